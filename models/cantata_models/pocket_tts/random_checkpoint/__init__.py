"""Checkpoints of random weights in the published format."""
