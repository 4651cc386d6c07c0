"""Files in, transcripts out: OpenAI's transcriptions and translations."""
