"""Cantata's own HTTP and WebSocket routes, a module for each family."""
