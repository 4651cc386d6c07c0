"""What models share: published checkpoint formats, backbones on vLLM's layers. Knows no model."""
