"""Checkpoints of seeded random weights in Qwen3-TTS's published format.

Tiny ones prove numeric parity with the reference package; one of published size measures speed,
which depends on shapes alone. Needs NumPy, torch and safetensors only, so the same files can be
made beside any version of anything else.
"""
