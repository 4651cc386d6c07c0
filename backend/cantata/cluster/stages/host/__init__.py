"""The side that runs stages for a pipeline elsewhere."""
