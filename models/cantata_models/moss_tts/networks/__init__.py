"""The networks of both models: backbones on vLLM's layers, the rest in plain torch."""
