"""Noise, times, guidance: all that turns velocities into a picture."""
