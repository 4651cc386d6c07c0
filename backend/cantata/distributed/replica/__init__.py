"""The side that runs models: one process's, for edges elsewhere."""
