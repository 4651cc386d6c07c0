"""A client that streams text in and sound out: its connection, whatever its protocol."""
