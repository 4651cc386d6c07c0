"""A random talker small enough for tests: every part that the engine relies on, no voice."""
