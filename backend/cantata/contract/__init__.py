"""Types shared by the backend and the models' plug-ins. It imports neither."""
