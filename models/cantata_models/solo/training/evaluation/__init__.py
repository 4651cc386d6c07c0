"""Evaluates the embedded voice on held-out sentences, compared with its teachers."""
