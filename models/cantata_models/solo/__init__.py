"""solo: the embedded voice, small enough to ship with the server and to speak on one CPU core."""
