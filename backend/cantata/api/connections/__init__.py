"""Sockets below the app: accepting connections, time limits for clients, and the shutdown."""
