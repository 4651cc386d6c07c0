"""Texts to phones, for whichever voice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from threading import Lock

import numpy as np

from cantata.contract.data.errors import InvalidRequest
from cantata_layers.misaki.g2p import load_g2p
from cantata_layers.misaki.phones import PHONE_MARKUP, vocabulary
from cantata_layers.misaki.sentences import PADDING, PhonemizedSentence, PhonemizedWord
from cantata_layers.speakable import can_be_spoken
from cantata_models.kokoro.config import Alphabet
from cantata_models.kokoro.text_reader import (
    FRONT_ENDS,
    KokoroTextReader,
    list_readable,
    load_reader,
)
from cantata_models.kokoro.voices import AMERICAN, BRITISH, LANGUAGES, KokoroVoiceFile

CODES: Mapping[str, str] = {
    "en": AMERICAN,
    "en-us": AMERICAN,
    "en-gb": BRITISH,
    "es": "e",
    "fr": "f",
    "fr-fr": "f",
    "hi": "h",
    "it": "i",
    "ja": "j",
    "pt": "p",
    "pt-br": "p",
    "zh": "z",
}
"""Other names of languages, as the reference package and BCP 47 have them."""


class PhoneReader:
    """Reads texts as the voices of a checkpoint need them. May be called from several threads.

    Args:
        alphabet: of the checkpoint.
        files: its voices.
    """

    def __init__(self, alphabet: Alphabet, files: Sequence[KokoroVoiceFile]) -> None:
        self._alphabet = alphabet
        self._files = files
        self._readable = list_readable()
        self._readers = dict[str, KokoroTextReader]()
        self._loading = Lock()
        self._letters = {number: letter for letter, number in vocabulary().items()}
        for file in files:
            if file.speaks_english:
                load_g2p(file.language == BRITISH)

    def list_tags(self) -> Iterator[str]:
        """BCP 47 tags of the languages that its voices speak and whose texts are read."""
        spoken = {file.language for file in self._files}
        if not spoken.isdisjoint((AMERICAN, BRITISH)):
            yield "en"
        yield from (FRONT_ENDS[key].tag for key in sorted(spoken & self._readable))

    def read(self, text: str, voice: KokoroVoiceFile) -> Sequence[PhonemizedSentence]:
        """Sentences in the checkpoint's own vocabulary; none for a text without a sound.

        Raises:
            InvalidRequest: only letters of other scripts, a text of a language that is not read
                here, or a bad phone override.
        """
        if not voice.speaks_english and voice.language not in self._readable:
            self._check_phones_alone(text, voice)
        if voice.speaks_english:
            read = load_g2p(voice.language == BRITISH).read(text)
        else:
            read = tuple(self._load_reader(voice.language).read(text))
        if not read and can_be_spoken(text):
            language = LANGUAGES[voice.language].split()[-1]
            raise InvalidRequest(
                f"nothing in the text can be read: voice {voice.name!r} reads {language}", "input"
            )
        if not voice.speaks_english:
            return read
        translated = [self._translate(sentence) for sentence in read]
        return [sentence for sentence in translated if len(sentence.phones) > 2]

    def phonemize(self, text: str, language: str) -> str:
        """The phones of a text, its sentences with a space between.

        Raises:
            InvalidRequest: no voice speaks the language, or as `read`.
        """
        code = CODES.get(language.lower(), language.lower())
        voice = next((file for file in self._files if file.language == code), None)
        if voice is None:
            valid = ", ".join(sorted({file.language for file in self._files}))
            raise InvalidRequest(
                f"language: no voice speaks {language!r}; valid: {valid}", "language"
            )
        letters = {number: letter for letter, number in self._alphabet.vocabulary.items()}
        return " ".join(
            "".join(letters[phone] for phone in sentence.phones[1:-1])
            for sentence in self.read(text, voice)
        )

    def _load_reader(self, language: str) -> KokoroTextReader:
        with self._loading:
            if language not in self._readers:
                self._readers[language] = load_reader(language, self._alphabet)
            return self._readers[language]

    def _check_phones_alone(self, text: str, voice: KokoroVoiceFile) -> None:
        """Refuse a text that is more than phones and marks."""
        if not can_be_spoken(PHONE_MARKUP.sub(" ", text)):
            return
        extra = FRONT_ENDS[voice.language].extra if voice.language in FRONT_ENDS else None
        reason = "for which there is no text front end here"
        if extra is not None:
            reason = f"whose texts need another package: pip install 'cantata[{extra}]'"
        readable = [
            one.name for one in self._files if one.speaks_english or one.language in self._readable
        ]
        raise InvalidRequest(
            f"voice {voice.name!r} speaks {LANGUAGES[voice.language]}, {reason}. Write phones in "
            "double brackets, such as [[ola]], or choose a voice whose texts are read "
            f"({', '.join(readable) or 'none here'})",
            "input",
        )

    def _translate(self, sentence: PhonemizedSentence) -> PhonemizedSentence:
        """The English reader's ids to the checkpoint's; letters that its vocabulary lacks are left
        out."""
        ids = [
            self._alphabet.vocabulary.get(self._letters[phone]) for phone in sentence.phones[1:-1]
        ]
        # The place of each phone, and of the padding behind the last, among those that stay.
        places = np.cumsum([0, 1, *(number is not None for number in ids)]).tolist()
        words = tuple(
            PhonemizedWord(word.span, places[word.start], places[word.end])
            for word in sentence.words
        )
        return PhonemizedSentence(
            (PADDING, *(number for number in ids if number is not None), PADDING), words
        )
