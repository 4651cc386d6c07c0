"""A real Ray cluster on two hosts, in an environment that has Ray: `make test-cluster`."""
