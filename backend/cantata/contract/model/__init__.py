"""What a model implements and may use: its plug-in, its stages, exact products, sampling."""
