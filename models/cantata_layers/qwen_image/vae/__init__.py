"""The autoencoder's halves for one frame, as two-dimensional networks.

The published autoencoder is for videos. In front of a first frame its convolutions in time see
nothing, so only their last tap remains, and its convolutions between frames never run. Parameters
have the published names.
"""
