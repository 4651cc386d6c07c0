"""What the goldens are of, and the script that writes them with diffusers (`make parity-images`)."""
