"""The audio tokenizers: encode recordings to frames and decode frames as they arrive."""
