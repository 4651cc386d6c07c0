"""WebSocket /v1/realtime: OpenAI's protocol of spoken conversations (docs/realtime.md)."""
