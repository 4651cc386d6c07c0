"""Kept jobs over HTTP."""
