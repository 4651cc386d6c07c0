"""Measure a running server from outside, over HTTP and WebSocket alone."""
