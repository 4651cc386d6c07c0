"""Fish Speech S2 and OpenAudio S1: two layouts of one model, written from their format."""
