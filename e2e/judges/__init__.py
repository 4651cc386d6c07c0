"""Judges of sound that share nothing with the server: they know the text and what speech is."""
