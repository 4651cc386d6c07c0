"""The source of the goldens: inputs, and scripts that run the models' published code.

The tests need neither that code nor its dependencies, only the goldens and the seeded checkpoints.
"""
