"""The figures of one model's page: served, beside its bare stages, and the memory of its slots."""
