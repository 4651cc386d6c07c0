"""Protocols of other speech services, for clients that exist; each is one file and its messages.

A connection's text goes to the same `Speaker` as over the native WebSocket, and what the speaker
says comes back through the same `Outbox`; an adapter reads and writes its protocol's words.
"""
