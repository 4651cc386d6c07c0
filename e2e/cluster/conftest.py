"""Without the other end-to-end tests' fixtures, which need browsers."""
