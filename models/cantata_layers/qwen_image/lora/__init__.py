"""LoRA files: small changes of a denoiser's weights, fused into them when it is loaded."""
