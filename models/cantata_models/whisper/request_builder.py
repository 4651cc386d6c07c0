"""Whisper's requests: what a window's options mean for the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import PipelineRequest
from cantata.contract.data.transcripts import SPEECH_RATE, TranscriptionRequest
from cantata.contract.model.recognizer import Sound
from cantata_models.whisper.checkpoint import Vocabulary, read_config
from cantata_models.whisper.plugin import OUTPUT, RECOGNIZE


@dataclass(frozen=True, slots=True)
class WhisperInputs:
    language: str | None
    """Whisper's own code of the language. None: the model finds out."""
    translate: bool
    prompt: str
    """Text before the window."""
    temperature: float | None
    """0 is greedy. None: greedy, warmer where the result is a loop."""
    timestamps: bool
    """Times of words, and probabilities, are needed."""
    beam_size: int
    """Texts that are followed at a time; 1 is greedy, and takes the least time."""


MAX_WINDOW_S = 30.0
"""The positions of the encoder."""
_FILE_BEAM_SIZE = 5
"""As published: a quarter more time, a few words in a thousand less wrong."""


class WhisperRequestBuilder:
    """Implements `TranscriptionBuilder`."""

    has_timestamps = True
    max_window_s = MAX_WINDOW_S
    stage = RECOGNIZE
    output = OUTPUT

    def __init__(self, folder: Path) -> None:
        config = read_config(folder)
        self._vocabulary = Vocabulary(folder, is_multilingual=config.is_multilingual)

    @property
    def languages(self) -> tuple[str, ...]:
        """BCP 47 tags."""
        return self._vocabulary.languages

    @property
    def translates(self) -> bool:
        """Models that know English alone have nothing to translate."""
        return self._vocabulary.is_multilingual

    @property
    def warm_up(self) -> Sound:
        """A second of noise."""
        noise = np.random.default_rng(0).normal(0, 0.1, SPEECH_RATE)
        return noise.astype(np.float32)

    def build(
        self, request_id: str, request: TranscriptionRequest, sound: Sound | None
    ) -> PipelineRequest:
        """A window's options for the recognition stage."""
        language = None
        if request.language is not None:
            language = self._vocabulary.find_code(request.language)
            if language is None:
                valid = ", ".join(self.languages)
                raise InvalidRequest(f"language {request.language!r}: valid: {valid}", "language")
        if request.translate and not self.translates:
            raise InvalidRequest("this model knows English alone and translates nothing", "model")
        inputs = WhisperInputs(
            language,
            request.translate,
            request.prompt,
            request.temperature,
            request.timestamps or request.logprobs,
            beam_size=_FILE_BEAM_SIZE if request.batch else 1,
        )
        return PipelineRequest(request_id, {RECOGNIZE: inputs})

    def reader(self) -> None:
        """The recognition stage makes transcripts."""
