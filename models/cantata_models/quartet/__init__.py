"""quartet: four natural English voices of 6.5 million parameters, in this package."""
