"""The published tokenizers of both models.

A caller's text never becomes a special token, however it is spelled: its characters are encoded one
by one instead. WHY not refused: a text may quote markup and is then still read aloud, and every
spelling would have to be found, among them those that become special only when the tokenizer
normalises them (full-width brackets).
"""
