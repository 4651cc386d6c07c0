"""Qwen3-ASR: sound in, text out."""
