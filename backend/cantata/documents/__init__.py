"""Books and other documents: read in a process of their own, and cut into chapters."""
