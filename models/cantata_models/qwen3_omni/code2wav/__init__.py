"""Frames to 24 kHz sound."""
