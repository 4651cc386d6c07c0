"""The reference: transformers' Whisper with random weights."""
