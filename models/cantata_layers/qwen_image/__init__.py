"""What checkpoints in Qwen-Image's published layout share: networks, text encoding, sampling."""
