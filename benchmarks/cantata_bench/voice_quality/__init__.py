"""How voices sound, judged by networks that have nothing to do with them."""
