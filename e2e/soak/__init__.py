"""`make soak`: a loaded server, a fault every minute, and listeners that check every sample."""
