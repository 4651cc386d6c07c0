"""Text in, stage inputs out: what Kokoro does in the api process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import NotInstalled
from cantata.contract.data.request import PipelineRequest, SpeechRequest, Voice
from cantata_models.kokoro import onnx_files
from cantata_models.kokoro.config import Alphabet, load_config
from cantata_models.kokoro.voices import (
    KokoroInput,
    KokoroVoiceFile,
    list_voices,
    name_aliases,
    parse_blend,
)

try:
    from cantata_layers.misaki.phones import vocabulary
    from cantata_layers.misaki.sentences import PhonemizedSentence
    from cantata_models.kokoro.phone_reader import PhoneReader
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "hibari":
        raise
    raise NotInstalled(
        "Kokoro's text front end needs hibari-tts: pip install 'cantata[kokoro]'"
    ) from error

PACES = (0.5, 2.0)
CAPABILITIES = Capabilities(phones=True, phonemizes=True, paces=PACES, voice_blends=True)


@dataclass(frozen=True, slots=True)
class _Speaker:
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
            Voice(file.name, file.name, file.description, aliases[file.name], file.gender)
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
        return SpeechRequest("Hello, Zorvath." if first.speaks_english else "[[a]]", first.name)

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

    def _choose(self, request: SpeechRequest) -> _Speaker:
        shares: Mapping[str, float] = {request.voice: 1.0}
        if request.voice not in self._files:
            shares = parse_blend(request.voice, self._files)
        return _Speaker(self._files[next(iter(shares))], shares)


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
