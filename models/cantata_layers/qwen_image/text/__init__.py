"""From prompts, and pictures beside them, to the embeddings that the denoiser reads."""
