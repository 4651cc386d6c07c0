"""English text to phones: normalisation, lexicon, letter-to-sound network. See `phonemize`."""

from cantata_models.solo.text.errors import TextError, WordlessText
from cantata_models.solo.text.result import Sentence, Word
from cantata_models.solo.text.sentences import phonemize

__all__ = ["Sentence", "TextError", "Word", "WordlessText", "phonemize"]
