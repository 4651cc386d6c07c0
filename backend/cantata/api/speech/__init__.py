"""A speech request from its text to the bytes that a client gets."""
