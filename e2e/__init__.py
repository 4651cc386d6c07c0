"""End-to-end tests: a server process, a real browser, nothing replaced."""
