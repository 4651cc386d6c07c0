"""The browser page of Cantata. It speaks only HTTP and WebSocket with the server."""
