"""Checkpoints of seeded random weights in both published layouts, tiny or of the published size."""
