"""The published config.json, generation_config.json and preprocessor_config.json."""
