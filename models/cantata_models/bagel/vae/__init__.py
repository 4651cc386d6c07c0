"""The autoencoder, FLUX's."""
