"""Text in, phones and stage inputs out: what Kokoro does in the api process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

import numpy as np

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest, NotInstalled
from cantata.contract.data.request import PipelineRequest, SpeechRequest, Voice
from cantata_layers.g2p.front_ends import FRONT_ENDS, list_readable, load_reader
from cantata_layers.g2p.language_reader import LanguageReader
from cantata_layers.g2p.said_parts import Alphabet
from cantata_layers.misaki.phones import PHONE_MARKUP, vocabulary
from cantata_layers.request_building import can_be_spoken
from cantata_models.kokoro.config import (
    find_network,
    has_onnx,
    load_alphabet,
    load_config,
    takes_whole_speeds,
)
from cantata_models.kokoro.voices import (
    AMERICAN,
    BRITISH,
    LANGUAGES,
    KokoroInput,
    KokoroVoiceFile,
    list_exported_voices,
    list_voices,
    name_aliases,
    parse_blend,
)

try:
    from cantata_layers.misaki.g2p import load_g2p
    from cantata_layers.misaki.sentences import PADDING, PhonemizedSentence, PhonemizedWord
    from cantata_layers.misaki.speech import name_english
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "hibari":
        raise
    raise NotInstalled(
        "Kokoro's text front end needs hibari-tts: pip install 'cantata[kokoro]'"
    ) from error

PACES = (0.5, 2.0)
CAPABILITIES = Capabilities(phones=True, phonemizes=True, paces=PACES, voice_blends=True)


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


def name_language(voice: KokoroVoiceFile) -> str:
    """BCP 47 tag of what a voice speaks."""
    if voice.speaks_english:
        return name_english(british=voice.language == BRITISH)
    return FRONT_ENDS[voice.language].tag


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
        self._readers = dict[str, LanguageReader]()
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

    def _load_reader(self, language: str) -> LanguageReader:
        with self._loading:
            if language not in self._readers:
                self._readers[language] = load_reader(language, self._alphabet)
            return self._readers[language]

    def _check_phones_alone(self, text: str, voice: KokoroVoiceFile) -> None:
        """Refuse a text that is more than phones and marks."""
        if not can_be_spoken(PHONE_MARKUP.sub(" ", text)):
            return
        extra = FRONT_ENDS[voice.language].extra
        readable = [
            one.name for one in self._files if one.speaks_english or one.language in self._readable
        ]
        raise InvalidRequest(
            f"voice {voice.name!r} speaks {LANGUAGES[voice.language]}, whose texts need "
            f"another package: pip install 'cantata[{extra}]'. Write phones in "
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


@dataclass(frozen=True, slots=True)
class _VoiceShares:
    """Who speaks a request."""

    first: KokoroVoiceFile
    """Whose language it is."""
    shares: Mapping[str, float]


class KokoroRequestBuilder:
    """Implements `contract.model.plugin.PhonemizingBuilder`.

    Args:
        alphabet: of the checkpoint.
        files: its voices.
        capabilities: what it can do.
    """

    def __init__(
        self,
        alphabet: Alphabet,
        files: Sequence[KokoroVoiceFile],
        capabilities: Capabilities = CAPABILITIES,
    ) -> None:
        self._reader = PhoneReader(alphabet, files)
        self.capabilities = replace(capabilities, languages=tuple(self._reader.list_tags()))
        self._files = {file.name: file for file in files}
        aliases = name_aliases(files)
        self._voices = tuple(
            Voice(
                file.name,
                file.name,
                file.description,
                aliases[file.name],
                file.gender,
                name_language(file),
            )
            for file in files
        )

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The checkpoint's voices, with OpenAI's names as aliases."""
        return self._voices

    @property
    def warm_up(self) -> SpeechRequest:
        """Words that are in no lexicon, so that the letter-to-sound network is loaded too; phones
        for a voice of another language."""
        first = self._files[self._voices[0].id]
        return SpeechRequest(
            "Hello, Zorvik, 5 kg." if first.speaks_english else "[[a]]", first.name
        )

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """One pipeline request for each sentence; none for a text without a sound.

        Raises:
            InvalidRequest: only letters of other scripts, a text for a voice that needs phones, a
                bad phone override, or a bad mixture of voices.
        """
        speaker = self._choose(request)
        sentences = self._reader.read(request.text, speaker.first)
        return tuple(
            _make_request(f"{request_id}-{index}", sentence, speaker, request, index)
            for index, sentence in enumerate(sentences)
        )

    def phonemize(self, text: str, language: str) -> str:
        """The phones of a text, its sentences with a space between.

        Args:
            text: of a client.
            language: first letter of a voice's name, or a tag such as `en-gb` or `ja`.

        Raises:
            InvalidRequest: no voice speaks the language, or the text is not read.
        """
        return self._reader.phonemize(text, language)

    def _choose(self, request: SpeechRequest) -> _VoiceShares:
        shares: Mapping[str, float] = {request.voice: 1.0}
        if request.voice not in self._files:
            shares = parse_blend(request.voice, self._files)
        return _VoiceShares(self._files[next(iter(shares))], shares)


def _make_request(
    request_id: str,
    sentence: PhonemizedSentence,
    speaker: _VoiceShares,
    request: SpeechRequest,
    index: int,
) -> PipelineRequest:
    voice = KokoroInput(
        voices=tuple(speaker.shares),
        weights=tuple(speaker.shares.values()),
        phones=np.array(sentence.phones, np.int64),
        words=np.array([(word.start, word.end) for word in sentence.words], np.int64).reshape(
            -1, 2
        ),
        speed=request.speed,
        seed=(request.seed or 0) + index,
        begins=index == 0 and not request.continued,
    )
    spans = tuple(word.span for word in sentence.words)
    return PipelineRequest(request_id, {"voice": voice}, words=spans)


def load_builder(checkpoint: Path) -> KokoroRequestBuilder:
    """The request builder of a checkpoint folder.

    Raises:
        ConfigError: its configuration cannot be used, or it has no voices.
        NotInstalled: the text front end's package is missing.
    """
    if not has_onnx(checkpoint):
        return KokoroRequestBuilder(load_config(checkpoint).alphabet, list_voices(checkpoint))
    alphabet = load_alphabet(checkpoint)
    is_whole = takes_whole_speeds(find_network(checkpoint))
    can = replace(CAPABILITIES, paces=(1.0, 1.0)) if is_whole else CAPABILITIES
    return KokoroRequestBuilder(alphabet, list_exported_voices(checkpoint), can)
