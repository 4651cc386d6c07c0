"""Solo: the embedded English voice that ships in the repository."""
