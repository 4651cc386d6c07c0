"""How well and how fast recordings are transcribed: `cantata bench transcription`."""
