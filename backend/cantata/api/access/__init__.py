"""Who may use the server: API keys, origins, hosts, limits per key."""
