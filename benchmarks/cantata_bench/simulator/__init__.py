"""A server in simulated time: the same plan and the same admission, step times as parameters."""
