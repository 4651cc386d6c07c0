"""BAGEL-7B-MoT: one network for text and pictures, with two sets of weights."""
