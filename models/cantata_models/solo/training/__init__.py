"""Trains the embedded voice: text, audio, alignments, codec, talker, polish, evaluation."""
