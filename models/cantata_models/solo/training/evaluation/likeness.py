"""Voice similarity: stock voices against their teachers, and voices that follow a reference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cantata_models.solo.training.evaluation.acoustics import Rows
from cantata_models.solo.training.evaluation.measures import RecordingMeasures
from cantata_models.solo.training.evaluation.results import Result
from cantata_models.solo.training.evaluation.timbre import distance, nearest, usual_spread


@dataclass(frozen=True, slots=True)
class NearestTeacher:
    """The nearest teacher for each sentence of each voice."""

    confusion: dict[str, dict[str, int]]
    """Speaking voice -> voice of the nearest teacher -> number of sentences."""
    accuracy: float
    teacher_accuracy: float
    """Accuracy for the teachers' own sentences, each left out of its centre: the upper bound."""


@dataclass(frozen=True, slots=True)
class Prompted:
    """A speaker unseen in training, followed from a recording."""

    speaker: str
    distance: float
    """Distance from the speech to the speaker's own readings."""
    stock_voice: str
    """The stock voice nearest to the speaker."""
    stock_distance: float
    pitch_semitones: float
    """Absolute pitch error."""
    stock_pitch_semitones: float

    @property
    def wins(self) -> bool:
        """Whether following the recording comes closer than any stock voice."""
        return self.distance < self.stock_distance


@dataclass(frozen=True, slots=True)
class Prompting:
    """All speakers unseen in training."""

    share_won: float
    pitch_semitones: float
    stock_pitch_semitones: float
    speakers: tuple[Prompted, ...]


def rows(sounds: Sequence[RecordingMeasures]) -> Rows:
    """Returns the sounds' embeddings, [n, 42]."""
    return np.array([sound.embedding for sound in sounds])


def semitones(sounds: Sequence[RecordingMeasures], others: Sequence[RecordingMeasures]) -> float:
    """Returns the distance between the two median pitches, infinite if one has no pitch."""
    one, other = (float(np.median([s.pitch_hz for s in part])) for part in (sounds, others))
    return abs(12 * math.log2(one / other)) if one and other else math.inf


def recognize(
    speech: Mapping[str, Rows], teachers: Mapping[str, Rows], spread: Rows
) -> NearestTeacher:
    """Compares each sentence with every teacher's centre."""
    centres = {name: found.mean(axis=0) for name, found in teachers.items()}
    confusion = {name: dict.fromkeys(teachers, 0) for name in speech}
    for name, found in speech.items():
        for row in found:
            confusion[name][nearest(row, centres, spread)] += 1
    own = 0
    for name, found in teachers.items():
        for index, row in enumerate(found):
            others = np.delete(found, index, axis=0) if len(found) > 1 else found
            own += nearest(row, centres | {name: others.mean(axis=0)}, spread) == name
    return NearestTeacher(
        confusion,
        accuracy=sum(confusion[name][name] for name in speech) / sum(map(len, speech.values())),
        teacher_accuracy=own / sum(map(len, teachers.values())),
    )


def follow(
    speech: Sequence[RecordingMeasures],
    own: Sequence[RecordingMeasures],
    stock: Mapping[str, Sequence[RecordingMeasures]],
    speaker: str,
    spread: Rows,
) -> Prompted:
    """Compares speech that follows a reference, and every stock voice, with the speaker's readings.

    All of them use the same sentences.
    """
    wanted = rows(own).mean(axis=0)
    far = {
        name: distance(rows(sounds).mean(axis=0), wanted, spread) for name, sounds in stock.items()
    }
    closest = min(far, key=lambda name: far[name])
    return Prompted(
        speaker=speaker,
        distance=distance(rows(speech).mean(axis=0), wanted, spread),
        stock_voice=closest,
        stock_distance=far[closest],
        pitch_semitones=semitones(speech, own),
        stock_pitch_semitones=semitones(stock[closest], own),
    )


def judge_speakers(
    stock: Mapping[str, Sequence[Result]], prompted: Sequence[Result]
) -> tuple[NearestTeacher, Prompting | None]:
    """Judges the stock voices' sentences and any that follow a reference."""
    teachers = {name: rows([r.teacher for r in found]) for name, found in stock.items()}
    spread = usual_spread(list(teachers.values()))
    speech = {name: rows([r.speech for r in found]) for name, found in stock.items()}
    recognition = recognize(speech, teachers, spread)
    if not prompted:
        return recognition, None
    texts = {result.item.text for result in prompted}
    beside = {n: [r.speech for r in found if r.item.text in texts] for n, found in stock.items()}
    found: list[Prompted] = []
    for speaker in dict.fromkeys(result.item.speaker for result in prompted):
        own = [result for result in prompted if result.item.speaker == speaker]
        sounds, readings = [r.speech for r in own], [r.teacher for r in own]
        found.append(follow(sounds, readings, beside, speaker, spread))
    return recognition, Prompting(
        share_won=sum(one.wins for one in found) / len(found),
        pitch_semitones=float(np.mean([one.pitch_semitones for one in found])),
        stock_pitch_semitones=float(np.mean([one.stock_pitch_semitones for one in found])),
        speakers=tuple(found),
    )
