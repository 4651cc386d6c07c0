"""Trains the voices: texts, a teacher that reads them, the networks, judges."""
