"""Text in, stage inputs out: what solo does in the api process."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import (
    PipelineRequest,
    ReferenceAudio,
    SamplingOptions,
    SpeechRequest,
    TextSpan,
    Voice,
)
from cantata_layers.request_building import alias_by_gender
from cantata_layers.speaker_features import Vector, are_alike, speaker_vector
from cantata_models.solo.config import SoloConfig, load_config
from cantata_models.solo.plugin import TalkerInput
from cantata_models.solo.text import Sentence, TextError, WordlessText, phonemize


class SoloRequestBuilder:
    """Implements `contract.model.plugin.RequestBuilder` for one checkpoint."""

    def __init__(self, config: SoloConfig) -> None:
        self._phone_ids = {phone: index for index, phone in enumerate(config.phones)}
        self._voice_index = {voice.id: index for index, voice in enumerate(config.voices)}
        self._voices = alias_by_gender(
            [Voice(one.id, one.name, one.description, (), one.gender) for one in config.voices]
        )

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The checkpoint's voices, with OpenAI's names as aliases."""
        return self._voices

    @property
    def capabilities(self) -> Capabilities:
        """English, in any speaker's voice. Stretched speech is understood as well as slow or fast
        speech of the networks, or better, so they are asked for their usual pace alone."""
        return Capabilities(references=True, languages=("en",), phones=True)

    @property
    def warm_up(self) -> SpeechRequest:
        """A word."""
        return SpeechRequest("Hello.", self._voices[0].id)

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """One pipeline request for each sentence; none for a text without a sound. Raises
        InvalidRequest: only letters of other scripts, or a bad phone override."""
        try:
            sentences = phonemize(request.text)
        except WordlessText:
            return ()
        except TextError as error:
            raise InvalidRequest(str(error), "input") from error
        speaker = self._choose_speaker(request)
        return tuple(
            PipelineRequest(
                f"{request_id}-{index}",
                {"talker": self._build_input(sentence, speaker, request)},
                words=tuple(TextSpan(word.start, word.end) for word in sentence.words),
            )
            for index, sentence in enumerate(sentences)
        )

    def _build_input(
        self, sentence: Sentence, speaker: int | Vector, request: SpeechRequest
    ) -> TalkerInput:
        return TalkerInput(
            phones=np.array([self._phone_ids[phone] for phone in sentence.phones], np.int64),
            word_starts=np.array(sentence.word_starts, np.bool_),
            question=sentence.question,
            speaker=speaker,
            speed=request.speed,
            distinct=request.stretch > 1.0,
            sampling=SamplingOptions(request.seed or 0, request.temperature),
        )

    def may_be_same_speaker(self, first: ReferenceAudio, second: ReferenceAudio) -> bool:
        """Whether two recordings may be of one speaker, by their speaker vectors."""
        vectors = [speaker_vector(one.mono, one.sample_rate) for one in (first, second)]
        return are_alike(*vectors)

    def _choose_speaker(self, request: SpeechRequest) -> int | Vector:
        """A stock voice's index, or the reference's speaker vector."""
        if request.reference is None:
            return self._voice_index[request.voice]
        return speaker_vector(request.reference.mono, request.reference.sample_rate)


def load_builder(checkpoint: Path) -> SoloRequestBuilder:
    return SoloRequestBuilder(load_config(checkpoint))
