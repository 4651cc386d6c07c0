"""The denoiser: a transformer over the tokens of texts and pictures, all rows of a step packed.

Parameters have the published names.
"""
