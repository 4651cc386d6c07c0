"""Recordings of speakers to follow: read within bounds, fetched safely, kept on disk."""
