"""Cantata: a staged streaming speech server on vLLM."""

__version__ = "0.1.0"
