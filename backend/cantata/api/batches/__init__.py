"""Files over HTTP, and batches of requests that are answered in the background."""
