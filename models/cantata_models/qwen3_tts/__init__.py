"""Qwen3-TTS, a public text-to-speech model, loaded from its published checkpoint format."""
