"""The short form: a few sentences per voice against committed figures. It needs no teacher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from cantata_models.solo.checkpoint import WEIGHTS_FOLDER
from cantata_models.solo.training.evaluation.items import EvaluatedSentence, short_sentences
from cantata_models.solo.training.evaluation.judge import Judge, score
from cantata_models.solo.training.evaluation.likeness import rows
from cantata_models.solo.training.evaluation.measures import RecordingMeasures, measure
from cantata_models.solo.training.evaluation.results import Result
from cantata_models.solo.training.evaluation.synthesis import SoloSynthesizer
from cantata_models.solo.training.evaluation.timbre import nearest, usual_spread
from cantata_models.solo.training.text import HeldOut

BASELINE_FILE = WEIGHTS_FOLDER / "baseline.json"
WORSE_WER = 3.0
"""Allowed rise of the word error rate, in points."""
CLOSE_SHARE, CLOSE_MARGIN = 0.15, 0.10
"""A duration within 15 % of the teacher's is close; allowed drop in the share of close ones."""
SPEAKER_MARGIN = 0.10
"""Allowed drop in the share of sentences nearest to their own teacher."""
MAX_BROKEN = 0.01
"""Allowed share of broken chunk boundaries."""


@dataclass(frozen=True, slots=True)
class VoiceBaseline:
    """One voice's committed figures and the data for comparison."""

    wer: float
    duration_close: float
    recognized: float
    """Share of sentences nearest to their own teacher."""
    teacher_seconds: dict[str, float]
    """Sentence text -> duration of the teacher's reading."""
    centre: tuple[float, ...]
    """Mean embedding of the teacher's readings."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The committed figures of one checkpoint."""

    weights: str
    spread: tuple[float, ...]
    """Spread of each embedding dimension between sentences of one teacher."""
    voices: dict[str, VoiceBaseline]


BASELINE = TypeAdapter(Baseline)


@dataclass(frozen=True, slots=True)
class CheckedVoice:
    """One voice's current figures."""

    wer: float
    duration_close: float
    recognized: float
    clipped: int
    broken: float
    """Share of broken chunk boundaries."""


def read_baseline(path: Path = BASELINE_FILE) -> Baseline:
    """Reads the committed figures."""
    return BASELINE.validate_json(path.read_bytes())


def rounded(values: Iterable[float]) -> tuple[float, ...]:
    """Rounds to four digits, which is enough."""
    return tuple(round(float(value), 4) for value in values)


def check_voice(
    sounds: Mapping[str, RecordingMeasures], voice: str, baseline: Baseline
) -> CheckedVoice:
    """Summarizes one voice's sentences (text -> sound) against the baseline's teachers."""
    teacher = baseline.voices[voice].teacher_seconds
    centres = {name: np.array(one.centre) for name, one in baseline.voices.items()}
    spread = np.array(baseline.spread)
    ratios = np.array([sound.seconds / teacher[text] for text, sound in sounds.items()])
    found = [nearest(row, centres, spread) == voice for row in rows(list(sounds.values()))]
    seams = [sound.seams for sound in sounds.values()]
    return CheckedVoice(
        wer=score(list(sounds), [sound.words for sound in sounds.values()]).wer,
        duration_close=float((np.abs(ratios - 1) <= CLOSE_SHARE).mean()),
        recognized=float(np.mean(found)),
        clipped=sum(sound.clipped for sound in sounds.values()),
        broken=sum(s.broken for s in seams) / max(sum(s.boundaries for s in seams), 1),
    )


def problems(voice: str, now: CheckedVoice, then: VoiceBaseline) -> list[str]:
    """Describes what got worse; empty if nothing did."""
    found: list[str] = []
    if now.wer > then.wer + WORSE_WER:
        found.append(f"{voice}: word error rate {now.wer:.1f}%, was {then.wer:.1f}%")
    if now.duration_close < then.duration_close - CLOSE_MARGIN:
        found.append(
            f"{voice}: {now.duration_close:.0%} of the durations near the teacher's, "
            f"were {then.duration_close:.0%}"
        )
    if now.recognized < then.recognized - SPEAKER_MARGIN:
        found.append(
            f"{voice}: {now.recognized:.0%} of the sentences sound like it, "
            f"were {then.recognized:.0%}"
        )
    if now.clipped:
        found.append(f"{voice}: {now.clipped} samples at full scale")
    if now.broken > MAX_BROKEN:
        found.append(f"{voice}: {now.broken:.1%} of the chunk boundaries are audible")
    return found


def make_baseline(weights: str, results: Sequence[Result]) -> Baseline:
    """Makes the baseline from a full evaluation's results; `weights` is the digest."""
    stock = [r for r in results if not r.item.reference and r.item.speed == 1.0]
    names = dict.fromkeys(result.item.speaker for result in stock)
    teachers = {n: rows([r.teacher for r in stock if r.item.speaker == n]) for n in names}
    spread = rounded(usual_spread(list(teachers.values())))
    by_item = {result.item: result for result in stock}
    chosen = {
        n: [by_item[EvaluatedSentence(n, s.group, s.text)] for s in short_sentences()]
        for n in names
    }
    voices = {
        name: VoiceBaseline(
            wer=0.0,
            duration_close=0.0,
            recognized=0.0,
            teacher_seconds={r.item.text: round(r.teacher.seconds, 3) for r in chosen[name]},
            centre=rounded(teachers[name].mean(axis=0)),
        )
        for name in names
    }
    bare = Baseline(weights, spread, voices)
    for name, found in chosen.items():
        now = check_voice({r.item.text: r.speech for r in found}, name, bare)
        voices[name] = VoiceBaseline(
            wer=round(now.wer, 2),
            duration_close=round(now.duration_close, 3),
            recognized=round(now.recognized, 3),
            teacher_seconds=voices[name].teacher_seconds,
            centre=voices[name].centre,
        )
    return bare


def say(
    sentences: Iterable[HeldOut], voice: str, synthesizer: SoloSynthesizer, judge: Judge
) -> dict[str, RecordingMeasures]:
    """Synthesizes sentences in one voice and measures them: text -> sound."""
    speaker = synthesizer.stock_speaker(voice)
    return {
        item.text: measure(synthesizer.say(item.text, speaker).samples, judge) for item in sentences
    }
