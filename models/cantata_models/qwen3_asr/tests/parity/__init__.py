"""transformers' Qwen3-ASR on tiny random checkpoints, and what it made of each scenario."""
