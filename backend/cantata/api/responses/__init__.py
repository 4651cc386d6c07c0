"""OpenAI's Responses: conversations whose answers are items, kept so that later ones continue."""
