"""One folder per model; a folder with a `plugin.py` is found by looking."""
