"""The voice's networks in plain torch: no training code, no I/O."""
