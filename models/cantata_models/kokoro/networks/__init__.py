"""Kokoro's networks. Attributes are named as the published checkpoint names its weights."""
