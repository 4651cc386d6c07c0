"""Text in, stage inputs out: what hibari does in the api process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import PipelineRequest, SpeechRequest, Voice
from cantata_layers.openai_voices import list_aliases
from cantata_layers.speakable import can_be_spoken
from cantata_models.hibari.inputs import HibariInput
from cantata_models.hibari.voices import HibariVoiceFile, list_voices
from cantata_models.hibari.waveform import SAMPLE_RATE

if TYPE_CHECKING:
    from cantata_layers.misaki.sentences import PhonemizedSentence

PACES = (0.5, 2.0)


class HibariRequestBuilder:
    """Implements `contract.model.plugin.RequestBuilder`."""

    capabilities = Capabilities(
        languages=("en",), phones=True, paces=PACES, sample_rate=SAMPLE_RATE
    )

    def __init__(self, files: Sequence[HibariVoiceFile]) -> None:
        self._british = {file.name: file.british for file in files}
        self._voices = tuple(_describe(files, index) for index in range(len(files)))

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The checkpoint's voices, with OpenAI's names as aliases."""
        return self._voices

    @property
    def warm_up(self) -> SpeechRequest:
        """A word that is in no lexicon, so that the letter-to-sound network is loaded too."""
        return SpeechRequest("Hello, Zorvath.", self._voices[0].id)

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """One pipeline request for each sentence; none for a text without a sound.

        Raises:
            InvalidRequest: only letters of other scripts, or a bad phone override.
        """
        # Not before there is a text: the package imports SciPy where it is installed.
        from cantata_layers.misaki.g2p import load_g2p

        sentences = load_g2p(self._british[request.voice]).read(request.text)
        if not sentences and can_be_spoken(request.text):
            raise InvalidRequest("nothing in the text can be read: hibari speaks English", "input")
        return tuple(
            _make_request(f"{request_id}-{index}", sentence, request, index)
            for index, sentence in enumerate(sentences)
        )


def _make_request(
    request_id: str, sentence: PhonemizedSentence, request: SpeechRequest, index: int
) -> PipelineRequest:
    voice = HibariInput(
        voice=request.voice,
        phones=np.array(sentence.phones, np.int64),
        words=np.array([(word.start, word.end) for word in sentence.words], np.int64),
        speed=request.speed,
        seed=(request.seed or 0) + index,
        begins=index == 0 and not request.continued,
    )
    spans = tuple(word.span for word in sentence.words)
    return PipelineRequest(request_id, {"voice": voice}, words=spans)


def _describe(files: Sequence[HibariVoiceFile], index: int) -> Voice:
    file = files[index]
    aliases = list_aliases(index, len(files))
    kept = tuple(alias for alias in aliases if alias not in {one.name for one in files})
    return Voice(file.name, file.name.title(), file.description, kept, file.gender)


def load_builder(checkpoint: Path) -> HibariRequestBuilder:
    """The request builder of a folder with voices."""
    return HibariRequestBuilder(list_voices(checkpoint))
