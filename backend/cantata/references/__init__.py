"""Recordings of speakers to imitate: read within limits, fetched safely, kept on disk."""
