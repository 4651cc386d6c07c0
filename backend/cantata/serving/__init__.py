"""Processes that serve: a server, a replica, a stage host, each from its options to its end."""
