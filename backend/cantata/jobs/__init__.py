"""Kept jobs: books that are spoken sentence by sentence, and go on after whatever ended them."""
