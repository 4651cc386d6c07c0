"""The server's side of a pipeline: admission, the orchestrator, supervision of stage processes."""
