"""Texts of languages other than English to phones, as Kokoro's voices learnt them."""
