"""Writes checkpoints with random weights in the published format, for tests and measurements."""
