"""Recordings of speakers for models to follow: read within limits, fetched safely, kept on disk."""
