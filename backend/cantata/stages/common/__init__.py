"""What the kinds of stage share."""
