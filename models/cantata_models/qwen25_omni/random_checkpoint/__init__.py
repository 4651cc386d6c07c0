"""Checkpoints of seeded random weights in Qwen2.5-Omni's published format, for tests."""
