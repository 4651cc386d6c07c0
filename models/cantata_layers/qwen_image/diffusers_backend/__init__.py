"""The denoiser as diffusers computes it, for what can be hooked into its modules.

diffusers 0.42.1 is optional; it is imported in `load` alone.
"""
