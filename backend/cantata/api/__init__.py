"""HTTP and WebSocket over a `ChatService`. Imports the contract, never the engine."""
