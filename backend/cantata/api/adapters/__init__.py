"""Protocols of other speech services, for their unmodified clients.

Each protocol is one module and its messages. A connection's text goes to the same `UtteranceQueue`
as over Cantata's own WebSocket, and the answers come back through the same `Outbox`; an adapter
translates between those and its protocol's messages.
"""
