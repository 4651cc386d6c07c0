"""Measures a running server from outside, the bare model beside it, and plans past both."""
