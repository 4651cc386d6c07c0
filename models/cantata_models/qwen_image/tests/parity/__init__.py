"""What the goldens are of, and the script that writes them (`make parity-images`)."""
