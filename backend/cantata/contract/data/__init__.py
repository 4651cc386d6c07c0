"""The data that travels: requests, chunks of codes and sound, errors, a model's capabilities."""
