"""What the goldens were made of: scenarios and recordings, and the script that runs the reference.

`make parity` writes ../goldens anew in a virtual environment of its own. The tests need neither
that nor the reference package, only the goldens and the seeded checkpoints.
"""
