"""Decides what of an utterance a recognizer gets, and when it is asked for the words.

Silence is held back until the speaker goes on: what was asked for when a pause began is then all
there is to recognize when the turn ends. Long utterances become several windows, cut in pauses; in
speech without any, where speech is least likely.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cantata.speech_input.segmenter import SegmenterOptions, find_quietest
from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.turns import HYSTERESIS, ONSET_WINDOWS
from cantata.speech_input.vad import WINDOW

_WINDOW_S = WINDOW / HEARD_RATE
_PAUSE_WINDOWS = 3
"""Silence after which the words are asked for: longer than most consonants are silent, and short
beside what ends a turn."""
_PADDING_WINDOWS = 10
"""Silence kept before the first speech of a window."""


@dataclass(frozen=True, slots=True)
class SoundSegment:
    """Sound for the recognizer."""

    sound: Heard
    is_pause: bool = False
    """The speaker has fallen silent: the words so far are wanted."""
    begins: bool = False
    """A window begins with this sound."""
    before: Heard | None = None
    """With `begins`: all that the window before consists of. It was given more: what follows the
    cut."""


class UtteranceCutter:
    """Follows one utterance.

    Args:
        max_window_s: seconds of the longest window.
        threshold: probability from which on sound is speech.
    """

    def __init__(self, max_window_s: float, threshold: float) -> None:
        self._threshold = threshold
        self._options = SegmenterOptions(max_window_s)
        self._max_samples = int(max_window_s * HEARD_RATE)
        self._given: list[tuple[Heard, float]] = []
        """Pieces of the window in progress, and how likely they are speech."""
        self._length = 0
        """Samples of these."""
        self._held: deque[Heard] = deque()
        """Silence that the recognizer has not got."""
        self._quiet = 0
        """Pieces of silence in a row, while there is a window."""
        self._onset = 0
        """Pieces of speech in a row, before the first window."""
        self._is_begun = False

    @property
    def is_quiet(self) -> bool:
        """Whether the speaker pauses, or has not begun."""
        return self._quiet > 0 or not self._is_begun

    def take(self, sound: Heard, probability: float) -> list[SoundSegment]:
        """What the recognizer gets after the next piece of sound. Pieces of more than `WINDOW`
        samples are certainly speech or certainly none."""
        min_probability = self._threshold - HYSTERESIS if self._is_begun else self._threshold
        is_speech = probability >= min_probability
        if not self._is_begun and len(sound) <= WINDOW:
            self._onset = self._onset + 1 if is_speech else 0
            is_speech = self._onset == ONSET_WINDOWS
        if is_speech:
            return self._take_speech(sound, probability)
        return self._take_silence(sound, probability)

    def _take_silence(self, sound: Heard, probability: float) -> list[SoundSegment]:
        if not self._is_begun:
            self._held.append(sound)
            self._trim()
            return []
        self._quiet += 1
        if self._quiet <= _PAUSE_WINDOWS:
            return self._give([sound], probability, is_pause=self._quiet == _PAUSE_WINDOWS)
        self._held.append(sound)
        if self._is_over:
            self._trim()
        return []

    def _take_speech(self, sound: Heard, probability: float) -> list[SoundSegment]:
        begins = not self._is_begun or self._is_over
        if begins:
            self._trim()
            self._given, self._length = [], 0
        self._is_begun, self._quiet = True, 0
        pieces = [*self._held, sound]
        self._held.clear()
        return self._give(pieces, probability, begins=begins)

    @property
    def _is_over(self) -> bool:
        """Whether the pause is so long that a window begins after it."""
        pause = self._options.pause_after(self._length / HEARD_RATE)
        return self._quiet * _WINDOW_S >= pause

    def _trim(self) -> None:
        while len(self._held) > _PADDING_WINDOWS:
            self._held.popleft()

    def _give(
        self,
        pieces: Sequence[Heard],
        probability: float,
        *,
        is_pause: bool = False,
        begins: bool = False,
    ) -> list[SoundSegment]:
        passages = []
        for piece in pieces[:-1]:
            passages += self._give_piece(piece, 0.0, begins=begins)
            begins = False
        return passages + self._give_piece(
            pieces[-1], probability, is_pause=is_pause, begins=begins
        )

    def _give_piece(
        self, piece: Heard, probability: float, *, is_pause: bool = False, begins: bool = False
    ) -> list[SoundSegment]:
        if self._length + len(piece) > self._max_samples:
            return [self._cut(piece, probability, is_pause=is_pause)]
        self._given.append((piece, probability))
        self._length += len(piece)
        return [SoundSegment(piece, is_pause, begins)]

    def _cut(self, piece: Heard, probability: float, *, is_pause: bool) -> SoundSegment:
        """End the window, which is full, where it is quietest; what follows begins the next."""
        pieces = [*self._given, (piece, probability)]
        place = find_quietest([one for _, one in pieces])
        before = np.concatenate([sound for sound, _ in pieces[:place]])
        self._given = pieces[place:]
        rest = np.concatenate([sound for sound, _ in self._given])
        self._length = len(rest)
        return SoundSegment(rest, is_pause, begins=True, before=before)
