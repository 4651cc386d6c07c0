"""What the goldens are of, and the script that writes them (`make parity MODEL=qwen_image`)."""
