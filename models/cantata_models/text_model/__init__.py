"""Any text model that vLLM runs: a Hugging Face folder that answers messages."""
