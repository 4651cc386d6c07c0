"""Between the server and its stage processes: a stage's interface, its messages and its figures."""
