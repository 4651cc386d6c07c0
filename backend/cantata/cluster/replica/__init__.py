"""The side that speaks: one process's models for edges elsewhere."""
