"""Names of stages and of their ports."""

SEE, REFERENCES_STAGE, DENOISE, DECODE = "see", "vae_encode", "denoise", "decode"
SEEN = "seen"
"""Of the vision transformer: tokens [L, D] of all pictures, one after the other."""
REFERENCES = "references"
"""Of the autoencoder's encoder: tokens [N, P] of all pictures, one after the other."""
IMAGE = "image"
"""Of the autoencoder's decoder."""
