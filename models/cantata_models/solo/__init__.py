"""solo: the embedded voice, small enough to ship with the server and to run on one CPU core."""
