"""What crosses between processes: edges for chunks, how a process is forked, its heartbeat."""
