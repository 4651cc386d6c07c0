"""How the embedded picture model is trained from two Debian packages."""
