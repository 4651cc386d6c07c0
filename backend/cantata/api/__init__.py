"""HTTP and WebSocket over a `ImageService`. Imports the contract, never the engine."""
