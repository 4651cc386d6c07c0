"""English text to phones: normalization, lexicon, letter-to-sound network. See `phonemize`."""

from cantata_models.solo.text.sentences import phonemize
from cantata_models.solo.text.tokens import Sentence, TextError, Word, WordlessText

__all__ = ["Sentence", "TextError", "Word", "WordlessText", "phonemize"]
