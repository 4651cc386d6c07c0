"""Pictures: beside diffusers' own pipeline, several at a time, and beside speech."""
