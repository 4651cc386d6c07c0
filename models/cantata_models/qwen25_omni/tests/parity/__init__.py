"""The source of the goldens: scenarios, and the script that runs the reference, transformers.

The tests need neither, only the goldens and the seeded checkpoints.
"""
