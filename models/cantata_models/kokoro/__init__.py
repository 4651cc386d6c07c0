"""Kokoro-82M: an English voice model of 82 million parameters, in its published format."""
