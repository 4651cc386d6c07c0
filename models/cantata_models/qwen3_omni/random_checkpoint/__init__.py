"""Checkpoints of seeded random weights in Qwen3-Omni's published format.

A tiny one proves numeric parity with the reference, a reduced one shows how the stages work
together at about a hundredth of the published size.
"""
