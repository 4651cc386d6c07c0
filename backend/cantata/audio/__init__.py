"""Sample formats and file headers."""
