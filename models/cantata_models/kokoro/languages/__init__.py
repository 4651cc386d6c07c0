"""Texts of other languages than English to the phones that Kokoro learnt them with."""
