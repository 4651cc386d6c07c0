"""Tests of the embedded picture model and of its training."""
