"""The talker's networks: two language models, and two transformers within a patch."""
