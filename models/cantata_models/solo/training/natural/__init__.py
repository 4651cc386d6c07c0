"""Trains the natural voice: texts, teachers that read them, codec, judgement."""
