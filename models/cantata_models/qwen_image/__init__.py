"""Qwen-Image and Qwen-Image-Edit: pictures from text, and pictures changed by text."""
