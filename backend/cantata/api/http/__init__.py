"""HTTP as such: middleware, bodies, and responses that are sent while they are made."""
