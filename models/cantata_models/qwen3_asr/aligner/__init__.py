"""Qwen3-ForcedAligner: when each word of a transcript was spoken."""
