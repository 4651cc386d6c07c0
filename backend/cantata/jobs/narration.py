"""What a chapter says and when: its paragraphs, sentence by sentence, with their places in the
chapter's sound."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from cantata.jobs.job import SoundShape
from cantata.text import strip_markup

_OF_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class NarratedSentence:
    """A sentence of a chapter, and the part of its sound in which it is marked."""

    text: str
    """Without markup, on one line, and without what XML cannot have."""
    speaker: str
    """Whose name stood before it; empty: nobody's."""
    clip: tuple[int, int] | None
    """First sample and end in the chapter's sound; each begins where the one before ends. None:
    it could not be spoken."""


@dataclass(frozen=True, slots=True)
class NarratedChapter:
    """A chapter, as a book shows and plays it."""

    title: str
    """May be empty."""
    paragraphs: tuple[tuple[NarratedSentence, ...], ...]
    samples: int
    """Of its sound, per channel."""

    @property
    def is_heard(self) -> bool:
        return any(one.clip for paragraph in self.paragraphs for one in paragraph)


def select_narration(
    db: sqlite3.Connection, id: str, chapter: int, title: str, shape: SoundShape
) -> NarratedChapter:
    """A chapter of a job that is spoken. `chapter`: from 0."""
    rows = db.execute(
        "SELECT text, speaker, pause_s, begins, samples, skipped FROM sentences"
        " WHERE job = ? AND chapter = ? AND samples IS NOT NULL ORDER BY number",
        (id, chapter),
    ).fetchall()
    onsets, place = list[int | None](), 0
    for _, _, pause_s, _, samples, skipped in rows:
        # The silence before a sentence belongs to the one before: the mark waits there.
        onsets.append(None if skipped else place + round(pause_s * shape.sample_rate))
        place += samples
    clips = _place_clips(onsets, place)
    paragraphs = list[list[NarratedSentence]]()
    for (text, speaker, pause_s, begins, _, _), clip in zip(rows, clips, strict=True):
        sentence = NarratedSentence(_write_plainly(text), _write_plainly(speaker), clip)
        if begins or pause_s or not paragraphs:
            paragraphs.append([])
        paragraphs[-1].append(sentence)
    return NarratedChapter(_write_plainly(title), tuple(map(tuple, paragraphs)), place)


def _place_clips(onsets: Sequence[int | None], end: int) -> list[tuple[int, int] | None]:
    clips: list[tuple[int, int] | None] = [None] * len(onsets)
    for number in reversed(range(len(onsets))):
        onset = onsets[number]
        if onset is not None:
            clips[number], end = (onset, end), onset
    first = next((number for number, clip in enumerate(clips) if clip), None)
    if first is not None and (clip := clips[first]):
        clips[first] = (0, clip[1])
    return clips


def _write_plainly(text: str) -> str:
    return " ".join(_OF_XML.sub(" ", strip_markup(text)).split())
