"""Tests of the recogniser."""
