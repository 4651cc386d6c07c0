"""Whisper: speech to text in many languages. A tiny English one ships."""
