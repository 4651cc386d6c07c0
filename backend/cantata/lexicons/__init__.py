"""Pronunciation lexicons: W3C's PLS 1.0 in, entries that requests carry out; kept in a folder."""
