"""What runs in a stage's own process: the loop, and one scheduler for each kind of stage."""
