"""Text as tokens, in both layouts' file formats."""
