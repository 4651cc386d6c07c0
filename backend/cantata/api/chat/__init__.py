"""Conversations over HTTP: OpenAI's chat completions."""
