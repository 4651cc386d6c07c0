"""Qwen3-TTS of published size with random weights on one NVIDIA GPU: see README.md."""
