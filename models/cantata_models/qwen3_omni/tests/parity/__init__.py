"""Goldens by transformers' own Qwen3-Omni, and what they are made of."""
