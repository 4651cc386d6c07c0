"""The 12.5 Hz speech tokenizer: encodes audio to frames and decodes frames as they arrive."""
