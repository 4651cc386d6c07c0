"""Cantata's model plug-ins, one folder each."""
