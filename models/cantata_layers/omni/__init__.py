"""What omni models share: conversations with media, up to the rows that their thinkers read."""
