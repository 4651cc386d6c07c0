"""How the weights that ship were made; not part of the wheel."""
