"""Names of stages and of their ports."""

ENCODE, REFERENCES_STAGE, DENOISE, DECODE = "encode", "vae_encode", "denoise", "decode"
CONDITION, NEGATIVE = "condition", "negative"
"""Of the text encoder: embeddings [T, E] of the prompt, and of what the picture shall not show."""
REFERENCES = "references"
"""Of the autoencoder's encoder: tokens [R, P] of all pictures, one after the other."""
IMAGE = "image"
"""Of the autoencoder's decoder."""
