"""English text to misaki's phones, which Kokoro and its descendants read."""
