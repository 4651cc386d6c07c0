"""HTTP and WebSocket over a `TranscriptionService`. Imports the contract, never the engine."""
