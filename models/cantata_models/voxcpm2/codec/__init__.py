"""AudioVAE V2: 16 kHz sound into latents, latents into 48 kHz sound."""
