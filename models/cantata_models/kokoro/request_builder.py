"""Text in, stage inputs out: what Kokoro does in the api process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest, NotInstalled
from cantata.contract.data.request import PipelineRequest, SpeechRequest, TextSpan, Voice
from cantata_layers.speakable import can_be_spoken
from cantata_models.kokoro import onnx_files
from cantata_models.kokoro.config import Alphabet, load_config
from cantata_models.kokoro.inputs import KokoroInput
from cantata_models.kokoro.voices import (
    BRITISH,
    LANGUAGES,
    KokoroVoiceFile,
    list_voices,
    name_aliases,
    parse_blend,
)

try:
    from cantata_layers.misaki.g2p import PhonemizedSentence, PhonemizedWord, load_g2p
    from cantata_layers.misaki.phones import PHONE_MARKUP, vocabulary
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "hibari":
        raise
    raise NotInstalled(
        "Kokoro's text front end needs hibari-tts: pip install 'cantata[kokoro]'"
    ) from error

PACES = (0.5, 2.0)
CAPABILITIES = Capabilities(languages=("en",), phones=True, paces=PACES, voice_blends=True)
PADDING = 0
MAX_MARKS = 3
"""Behind one word of phones; more change nothing."""
_STRESS = "ˈˌː"
_ENDS = ".!?…"
"""Marks that end a sentence of phones."""


@dataclass(frozen=True, slots=True)
class _Speaker:
    """Who speaks a request."""

    first: KokoroVoiceFile
    """Whose language it is."""
    shares: Mapping[str, float]


class KokoroRequestBuilder:
    """Implements `contract.model.plugin.RequestBuilder`.

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
        self.capabilities = capabilities
        self._alphabet = alphabet
        self._files = {file.name: file for file in files}
        aliases = name_aliases(files)
        self._voices = tuple(
            Voice(file.name, file.name, file.description, aliases[file.name], file.gender)
            for file in files
        )
        self._letters = {number: letter for letter, number in vocabulary().items()}
        for file in files:
            if file.speaks_english:
                load_g2p(file.language == BRITISH)

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The checkpoint's voices, with OpenAI's names as aliases."""
        return self._voices

    @property
    def warm_up(self) -> SpeechRequest:
        """Words that are in no lexicon, so that the letter-to-sound network is loaded too; phones
        for a voice of another language."""
        first = self._files[self._voices[0].id]
        return SpeechRequest("Hello, Zorvath." if first.speaks_english else "[[a]]", first.name)

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """One pipeline request for each sentence; none for a text without a sound.

        Raises:
            InvalidRequest: only letters of other scripts, a text for a voice that needs phones, a
                bad phone override, or a bad mixture of voices.
        """
        speaker = self._choose(request)
        sentences = self._read(request.text, speaker.first)
        return tuple(
            _make_request(f"{request_id}-{index}", sentence, speaker, request, index)
            for index, sentence in enumerate(sentences)
        )

    def _choose(self, request: SpeechRequest) -> _Speaker:
        shares: Mapping[str, float] = {request.voice: 1.0}
        if request.voice not in self._files:
            shares = parse_blend(request.voice, self._files)
        return _Speaker(self._files[next(iter(shares))], shares)

    def _read(self, text: str, voice: KokoroVoiceFile) -> Sequence[PhonemizedSentence]:
        """Sentences in the checkpoint's own vocabulary."""
        if not voice.speaks_english:
            return read_phones_alone(text, voice, self._alphabet, self._files.values())
        sentences = load_g2p(voice.language == BRITISH).read(text)
        if not sentences and can_be_spoken(text):
            raise InvalidRequest("nothing in the text can be read: Kokoro reads English", "input")
        translated = [self._translate(sentence) for sentence in sentences]
        return [sentence for sentence in translated if len(sentence.phones) > 2]

    def _translate(self, sentence: PhonemizedSentence) -> PhonemizedSentence:
        """The reader's ids to the checkpoint's; letters that its vocabulary lacks are left out."""
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


def read_phones_alone(
    text: str, voice: KokoroVoiceFile, alphabet: Alphabet, voices: Iterable[KokoroVoiceFile]
) -> Sequence[PhonemizedSentence]:
    """The sentences of a text of phones in double brackets and marks, such as `[[ola]], [[mundo]]!`

    Args:
        text: of the client.
        voice: speaks a language whose texts are not read.
        alphabet: of the checkpoint.
        voices: of the checkpoint, for the message.

    Raises:
        InvalidRequest: there is other text, a letter that is no phone, or too many phones at once.
    """
    if can_be_spoken(PHONE_MARKUP.sub(" ", text)):
        english = ", ".join(one.name for one in voices if one.speaks_english) or "none here"
        raise InvalidRequest(
            f"voice {voice.name!r} speaks {LANGUAGES[voice.language]}, and only English texts are "
            "read: write phones in double brackets, such as [[ola]], or choose an English voice "
            f"({english})",
            "input",
        )
    sentences = list[PhonemizedSentence]()
    phones, words = list[int](), list[PhonemizedWord]()
    matches = list(PHONE_MARKUP.finditer(text))
    ends = [match.start() for match in matches[1:]] + [len(text)]
    space = [alphabet.vocabulary[" "]] if " " in alphabet.vocabulary else []
    for match, end in zip(matches, ends, strict=False):
        said, marks = _spell(match[1], alphabet), _read_marks(text[match.end() : end], alphabet)
        if words and len(phones) + len(said) + MAX_MARKS >= alphabet.max_phones:
            sentences.append(PhonemizedSentence((PADDING, *phones, PADDING), tuple(words)))
            phones, words = [], []
        if words:
            phones += space
        begin = len(phones) + 1
        words.append(PhonemizedWord(TextSpan(match.start(), match.end()), begin, begin + len(said)))
        phones += [*said, *marks]
        if end == len(text) or any(mark in text[match.end() : end] for mark in _ENDS):
            sentences.append(PhonemizedSentence((PADDING, *phones, PADDING), tuple(words)))
            phones, words = [], []
    return sentences


def _spell(written: str, alphabet: Alphabet) -> list[int]:
    """The ids of one override's phones."""
    letters = " ".join(written.split())
    unknown = [letter for letter in letters if letter not in alphabet.vocabulary]
    most = alphabet.max_phones - MAX_MARKS
    problem = None
    if unknown:
        problem = f"{unknown[0]!r} is no phone of this checkpoint's vocabulary"
    elif not any(letter.isalpha() and letter not in _STRESS for letter in letters):
        problem = "there are no phones"
    elif len(letters) > most:
        problem = f"{len(letters)} phones at once; at most {most}"
    if problem:
        raise InvalidRequest(f"[[{written[:40]}]]: {problem}", "input")
    return [alphabet.vocabulary[letter] for letter in letters]


def _read_marks(text: str, alphabet: Alphabet) -> list[int]:
    """The ids of the marks behind a word."""
    marks = "".join(text.split())
    return [alphabet.vocabulary[mark] for mark in marks if mark in alphabet.vocabulary][:MAX_MARKS]


def _make_request(
    request_id: str,
    sentence: PhonemizedSentence,
    speaker: _Speaker,
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
    if not onnx_files.has_onnx(checkpoint):
        return KokoroRequestBuilder(load_config(checkpoint).alphabet, list_voices(checkpoint))
    # The published vocabulary, which is the reader's too.
    alphabet = Alphabet(vocabulary(), onnx_files.MAX_PHONES)
    is_whole = onnx_files.takes_whole_speeds(onnx_files.find_network(checkpoint))
    can = replace(CAPABILITIES, paces=(1.0, 1.0)) if is_whole else CAPABILITIES
    return KokoroRequestBuilder(alphabet, onnx_files.list_voices(checkpoint), can)
