"""The source of the goldens: scenarios, recordings, and the script that runs the reference.

`make parity MODEL=pocket_tts` rewrites ../goldens in its own virtual environment. The tests need
neither that environment nor the reference package, only the goldens and the seeded checkpoints.
"""
