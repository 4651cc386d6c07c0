"""Stage processes and the orchestrator that drives them."""
