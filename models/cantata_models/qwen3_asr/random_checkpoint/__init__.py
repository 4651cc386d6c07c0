"""Checkpoints of seeded random weights in Qwen3-ASR's published format, for tests."""
