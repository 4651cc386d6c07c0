"""Pure types shared by the backend and the models' plug-ins. Imports nothing of either."""
