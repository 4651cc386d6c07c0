"""One folder per model; each is found through the entry-point group `cantata.models`."""
