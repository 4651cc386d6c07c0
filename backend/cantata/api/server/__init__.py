"""The server itself: its sockets, its settings, its start and its end."""
