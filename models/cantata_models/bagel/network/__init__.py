"""The two sets of weights, the contexts that they read and write, and the eyes."""
