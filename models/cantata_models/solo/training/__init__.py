"""How the embedded voice is made: text, audio, alignments, codec, talker, polish, evaluation."""
