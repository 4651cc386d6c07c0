"""Checkpoints of seeded random weights in Qwen3-TTS's published format.

Tiny ones prove numeric parity with the reference package. One of the published size measures speed,
which depends only on shapes. It needs only NumPy, torch and safetensors, so the same files can be
made with any versions of other packages installed.
"""
