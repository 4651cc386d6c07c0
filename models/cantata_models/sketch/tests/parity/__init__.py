"""Goldens of diffusers, and the script that writes them."""
