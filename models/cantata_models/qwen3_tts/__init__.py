"""Qwen3-TTS: a public text-to-speech model by its published checkpoint format."""
