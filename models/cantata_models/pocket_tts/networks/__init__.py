"""The talker's networks: a language model, and the head that makes a latent of noise."""
