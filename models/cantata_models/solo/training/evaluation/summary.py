"""Summarizes results into figures: one plain structure, written as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from cantata_models.solo.training.evaluation.judge import Score, score
from cantata_models.solo.training.evaluation.likeness import (
    NearestTeacher,
    Prompting,
    judge_speakers,
)
from cantata_models.solo.training.evaluation.pace import RealTimeFactors
from cantata_models.solo.training.evaluation.results import Result

CLOSE_SHARE = 0.15
"""A duration within this share of the teacher's counts as close."""
SPEED_SHARE = 0.10
"""At other speeds, a duration within this share of 1 / speed counts as close."""


@dataclass(frozen=True, slots=True)
class SentenceFigures:
    """Figures for a set of sentences at normal speed."""

    teacher: Score
    codec: Score
    speech: Score
    distortion_db: float
    duration_ratio: float
    """Mean of the speech's duration over the teacher's."""
    duration_close: float
    """Share within 15 %."""
    peak: float
    clipped: int
    first_missing: int
    last_missing: int
    boundaries: int
    broken_boundaries: int
    step_db: float
    """At chunk boundaries: mean over sentences of the 95th percentile."""
    interior_step_db: float
    click: float
    interior_click: float


@dataclass(frozen=True, slots=True)
class SpeedFigures:
    """Figures for one voice at one speed."""

    voice: str
    speed: float
    teacher: Score
    speech: Score
    duration_ratio: float
    """Mean of duration times speed over the duration at normal speed; 1 is exact."""
    duration_close: float
    """Share within 10 %."""


@dataclass(frozen=True, slots=True)
class VoiceFigures:
    """Figures for one voice, over all its sentences and per group."""

    voice: str
    pace: RealTimeFactors
    overall: SentenceFigures
    groups: dict[str, SentenceFigures]


@dataclass(frozen=True, slots=True)
class Summary:
    """All figures of the evaluation."""

    weights: str
    """Digest of the checkpoint."""
    overall: SentenceFigures
    voices: tuple[VoiceFigures, ...]
    speeds: tuple[SpeedFigures, ...]
    recognition: NearestTeacher
    prompting: Prompting | None
    """None if no item followed a reference."""


def figures(results: Sequence[Result]) -> SentenceFigures:
    """Summarizes sentences at normal speed; there is at least one."""
    texts = [result.item.text for result in results]
    speech = [result.speech for result in results]
    seams = [sound.seams for sound in speech]
    ratios = np.array([result.speech.seconds / result.teacher.seconds for result in results])

    def mean(values: Iterable[float]) -> float:
        return float(np.mean(list(values)))

    return SentenceFigures(
        teacher=score(texts, [result.teacher.words for result in results]),
        codec=score(texts, [result.codec.words if result.codec else "" for result in results]),
        speech=score(texts, [sound.words for sound in speech]),
        distortion_db=mean(result.likeness.distortion_db for result in results),
        duration_ratio=mean(ratios),
        duration_close=mean(np.abs(ratios - 1) <= CLOSE_SHARE),
        peak=max(sound.peak for sound in speech),
        clipped=sum(sound.clipped for sound in speech),
        first_missing=sum(result.likeness.edges.first_missing for result in results),
        last_missing=sum(result.likeness.edges.last_missing for result in results),
        boundaries=sum(seam.boundaries for seam in seams),
        broken_boundaries=sum(seam.broken for seam in seams),
        step_db=mean(seam.step_db for seam in seams),
        interior_step_db=mean(seam.interior_step_db for seam in seams),
        click=mean(seam.click for seam in seams),
        interior_click=mean(seam.interior_click for seam in seams),
    )


def speed_figures(fast_or_slow: Sequence[Result], usual: Sequence[Result]) -> SpeedFigures:
    """Summarizes one voice at one speed against the same sentences at normal speed."""
    item = fast_or_slow[0].item
    texts = [result.item.text for result in fast_or_slow]
    seconds = {result.item.text: result.speech.seconds for result in usual}
    ratios = np.array(
        [result.speech.seconds * item.speed / seconds[result.item.text] for result in fast_or_slow]
    )
    return SpeedFigures(
        voice=item.speaker,
        speed=item.speed,
        teacher=score(texts, [result.teacher.words for result in fast_or_slow]),
        speech=score(texts, [result.speech.words for result in fast_or_slow]),
        duration_ratio=float(ratios.mean()),
        duration_close=float((np.abs(ratios - 1) <= SPEED_SHARE).mean()),
    )


def voice_figures(voice: str, results: Sequence[Result], pace: RealTimeFactors) -> VoiceFigures:
    """Summarizes one voice's sentences at normal speed."""
    groups = dict.fromkeys(result.item.group for result in results)
    return VoiceFigures(
        voice,
        pace,
        figures(results),
        {group: figures([r for r in results if r.item.group == group]) for group in groups},
    )


def summarize(
    weights: str, results: Sequence[Result], paces: Mapping[str, RealTimeFactors]
) -> Summary:
    """Summarizes all results. `weights` is the checkpoint's digest; `paces` has one per voice."""
    stock = [result for result in results if not result.item.reference]
    usual = [result for result in stock if result.item.speed == 1.0]
    prompted = [result for result in results if result.item.reference]
    voices = dict.fromkeys(result.item.speaker for result in usual)
    of_voice = {v: [result for result in usual if result.item.speaker == v] for v in voices}

    def voice_and_speed(result: Result) -> tuple[str, float]:
        return result.item.speaker, result.item.speed

    others = [result for result in stock if result.item.speed != 1.0]
    runs = groupby(sorted(others, key=voice_and_speed), key=voice_and_speed)
    recognition, prompting = judge_speakers(of_voice, prompted)
    return Summary(
        weights=weights,
        overall=figures(usual),
        voices=tuple(voice_figures(voice, of_voice[voice], paces[voice]) for voice in voices),
        speeds=tuple(speed_figures(list(run), of_voice[who]) for (who, _), run in runs),
        recognition=recognition,
        prompting=prompting,
    )
