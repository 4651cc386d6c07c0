"""The 12.5 Hz speech tokenizer: sound to frames, and frames to sound as they arrive."""
