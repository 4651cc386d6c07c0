"""The published model_index.json and the config.json of each part."""
