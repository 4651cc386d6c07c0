"""When the beginning of an unfinished sentence is spoken, instead of waiting for its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from cantata.api.speech.utterance_queue import UtteranceQueue
from cantata.contract.data.request import TextSpan
from cantata.text.openings import OpeningEnd, find_opening

PATIENCE_S = {OpeningEnd.CLAUSE: 0.2, OpeningEnd.PHRASE: 0.5}
"""Seconds in which a sentence may be completed although its listener hears nothing; a fast writer
completes it. Turns of a conversation are about as far apart."""


@dataclass(frozen=True, slots=True)
class PlannedOpening:
    """An opening, unless its sentence is complete before."""

    span: TextSpan
    rest: int
    """Where the text behind it begins."""
    due_s: float
    """When it is to be spoken."""


def plan_opening(text: str, since_s: float, sound_until_s: float) -> PlannedOpening | None:
    """Plan what of an unfinished sentence is spoken next: as late as the listener allows, since a
    longer piece sounds better.

    Args:
        text: what `split_sentences` left.
        since_s: when its first piece came.
        sound_until_s: until when the listener has sound, less the time that a voice needs to begin.

    Returns:
        None if there is no opening yet. All times by the same clock.
    """
    for end in OpeningEnd:
        found = find_opening(text, end)
        if found is not None:
            return PlannedOpening(*found, max(since_s + PATIENCE_S[end], sound_until_s))
    return None


class OpeningTimer:
    """Speaks openings of one connection's text when they are due: while nothing is being spoken."""

    def __init__(self, utterances: UtteranceQueue, speak: Callable[[PlannedOpening], None]) -> None:
        self._utterances = utterances
        self._speak = speak
        self._text = ""
        self._since_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        utterances.on_idle = self._plan

    def watch(self, text: str, *, is_new: bool) -> None:
        """The text that is not a sentence yet has grown; `is_new`: nothing of it came before."""
        self._text = text
        if is_new:
            self._since_s = asyncio.get_running_loop().time()
        self._plan()

    def stop(self) -> None:
        """There is no such text any more."""
        self._text = ""
        self._plan()

    def _plan(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        utterances = self._utterances
        if not self._text or not utterances.idle:
            return
        sound_until_s = utterances.heard_until - utterances.first_sound_s
        opening = plan_opening(self._text, self._since_s, sound_until_s)
        if opening is None:
            return
        loop = asyncio.get_running_loop()
        if opening.due_s <= loop.time():
            self._speak(opening)
        else:
            self._timer = loop.call_at(opening.due_s, self._plan)
