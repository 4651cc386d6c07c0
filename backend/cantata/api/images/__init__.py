"""Pictures over HTTP: OpenAI's image generations and edits."""
