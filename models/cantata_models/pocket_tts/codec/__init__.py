"""Mimi without its quantiser: sound into continuous frames, latents into sound."""
