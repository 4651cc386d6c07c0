"""Text in, stage inputs out: what quartet does in the api process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import ReferenceAudio, SpeechRequest, Voice
from cantata_layers.harmonic_vocoder import SAMPLE_RATE
from cantata_layers.misaki.speech import EnglishRequestBuilder, name_english
from cantata_layers.request_building import alias_by_gender
from cantata_layers.speaker_features import are_alike, speaker_vector
from cantata_models.quartet.config import load_config


class QuartetRequestBuilder(EnglishRequestBuilder):
    """The stock voices, and the speaker of any recording."""

    def find_speaker(self, request: SpeechRequest) -> str | NDArray[np.float32]:
        """A stock voice's id, or the features of the recording."""
        if request.reference is None:
            return request.voice
        return speaker_vector(request.reference.mono, request.reference.sample_rate)

    def may_be_same_speaker(self, first: ReferenceAudio, second: ReferenceAudio) -> bool:
        """Whether two recordings may be of one speaker, by their features."""
        return are_alike(*(speaker_vector(one.mono, one.sample_rate) for one in (first, second)))


def load_builder(checkpoint: Path) -> QuartetRequestBuilder:
    """The request builder of a folder with voices, which have OpenAI's names as aliases."""
    known = load_config(checkpoint).voices
    voices = [
        Voice(one.id, one.name, one.description, (), one.gender, name_english(british=one.british))
        for one in known
    ]
    aliased = alias_by_gender(voices)
    return QuartetRequestBuilder(aliased, SAMPLE_RATE, inflections=True, references=True)
