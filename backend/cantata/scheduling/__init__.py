"""Scheduling decisions as pure functions over plain data: no I/O, no clock of their own."""
