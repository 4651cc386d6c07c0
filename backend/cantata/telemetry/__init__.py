"""What became of each request: a line of a log, a trace."""
