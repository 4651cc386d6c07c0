"""Checkpoints of seeded random weights in the published format, for tests and measurements."""
