"""Runs a model's pipeline in the test's own process, on a device that the test chooses."""
