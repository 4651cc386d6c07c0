"""What each stage's process runs."""
