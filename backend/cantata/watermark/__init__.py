"""A mark in the samples of speech: inaudible, found again by those who know its key."""
