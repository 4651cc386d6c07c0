"""solo with injected faults. Only the servers of tests that request it find it."""
