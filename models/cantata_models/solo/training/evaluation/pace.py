"""Times the talker and decoder per second of speech: one process, one thread, no other load.

Several processes measure the sentences at once and compete for the CPU. So speed is measured
afterwards, on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from cantata_models.solo.training.evaluation.acoustics import SAMPLE_RATE
from cantata_models.solo.training.evaluation.items import EvaluatedSentence
from cantata_models.solo.training.evaluation.synthesis import SoloSynthesizer

SENTENCES = 8
"""Sentences per voice."""


@dataclass(frozen=True, slots=True)
class RealTimeFactors:
    """Seconds of one thread per second of speech (real-time factors)."""

    talker: float
    """Time for the text track and the talker."""
    decoder: float
    """Time to decode frame by frame, as in streaming."""


def chosen(items: Sequence[EvaluatedSentence], voice: str) -> list[EvaluatedSentence]:
    """Returns `SENTENCES` of a voice's sentences at normal speed, spread over the groups."""
    usual = [i for i in items if i.speaker == voice and not i.reference and i.speed == 1.0]
    return usual[:: max(1, len(usual) // SENTENCES)][:SENTENCES]


def measure_pace(
    synthesizer: SoloSynthesizer, items: Sequence[EvaluatedSentence]
) -> dict[str, RealTimeFactors]:
    """Synthesizes some of the sentences again, one after another; returns voice -> pace."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    paces: dict[str, RealTimeFactors] = {}
    for voice in dict.fromkeys(item.speaker for item in items if not item.reference):
        speaker = synthesizer.stock_speaker(voice)
        said = [synthesizer.say(item.text, speaker) for item in chosen(items, voice)]
        seconds = sum(len(speech.samples) for speech in said) / SAMPLE_RATE
        paces[voice] = RealTimeFactors(
            talker=sum(speech.talker_s for speech in said) / seconds,
            decoder=sum(speech.codec_s for speech in said) / seconds,
        )
    torch.set_num_threads(threads)
    return paces
