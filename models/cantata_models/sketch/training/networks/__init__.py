"""The networks of a Qwen-Image checkpoint, small and batched, as training needs them."""
