"""What runs in a stage's own process: its launch, its loop and its messages."""
