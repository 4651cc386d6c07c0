"""Tests of the whole: a server process, a real browser, nothing replaced."""
