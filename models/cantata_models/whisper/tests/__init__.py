"""Tests of the recognizer."""
