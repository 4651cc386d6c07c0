"""Checkpoints of seeded random weights in the published format, tiny or of the published size."""
