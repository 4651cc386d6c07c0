"""Measures a running server from outside, next to the bare model, and simulates other machines."""
