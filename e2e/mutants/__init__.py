"""Proof that the suites bite: faults put into the code one at a time, each of which must be caught.

make mutants
"""
