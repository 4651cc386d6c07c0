"""Other vendors' clients, unmodified, against the running server: `make test-clients`.

They live in a virtual environment of their own, so nothing here may import `cantata`.
"""
