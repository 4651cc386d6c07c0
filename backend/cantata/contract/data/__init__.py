"""What travels: requests, chunks of codes and sound, errors, what a model can do."""
