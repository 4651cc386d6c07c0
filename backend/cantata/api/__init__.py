"""HTTP and WebSocket over a `SpeechService`. Imports the contract, never the engine."""
