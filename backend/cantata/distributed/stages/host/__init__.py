"""The side that runs stages for a pipeline on another machine."""
