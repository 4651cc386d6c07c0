"""The published config.json of both models, as frozen dataclasses."""
