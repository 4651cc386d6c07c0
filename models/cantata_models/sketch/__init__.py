"""Sketch, the embedded picture model: a toy that draws emoji-like pictures from words."""
