"""Qwen3-Omni-MoE: text, sound, pictures and video in, text and speech out."""
