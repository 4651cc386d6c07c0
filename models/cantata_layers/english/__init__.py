"""How English text is read: numbers, units, abbreviations, addresses and signs as spoken words."""
