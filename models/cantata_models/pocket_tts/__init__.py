"""Pocket TTS, a small voice by Kyutai: a language model over continuous latents, and Mimi."""
