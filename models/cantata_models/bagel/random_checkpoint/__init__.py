"""Small checkpoints of random weights in the published layout."""
