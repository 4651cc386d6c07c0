"""VoxCPM2: a talker of latents by flow matching, and an autoencoder's decoder."""
