"""The gates of the picture model, measured on pictures that it draws."""
