"""Cantata: a staged streaming speech server on vLLM."""

__version__ = "0.3.0"
