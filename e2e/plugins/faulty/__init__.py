"""solo, broken on purpose. Only the servers of tests that ask for it find it."""
