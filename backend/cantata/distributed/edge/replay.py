"""Repeats utterances and answers after a loss; the listener gets each character and sample once."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

import numpy as np

from cantata.audio.playback import Playback
from cantata.contract.chat_service import AnswerDelta, AnswerEvent, TextEnd
from cantata.contract.data.chat import CallArguments, CallStarted, Thought
from cantata.contract.data.errors import ReplicaLost
from cantata.contract.service import Samples, SpeechChunk


class ReplayDeduplicator:
    """How much of an utterance was passed on, and how much of its repetition is therefore dropped.

    Both must begin with the same samples, bit for bit; a checksum of what was passed on proves it,
    so the samples need not be kept.

    Args:
        sample_rate: Hz.
        clock: seconds, monotonic.
    """

    def __init__(self, sample_rate: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._sample_rate, self._clock = sample_rate, clock
        self._playback = Playback()
        self.samples = 0
        """Passed on, per channel."""
        self._words = 0
        self._sum = 0
        """CRC-32 of what was passed on."""
        self._again: _Repetition | None = None

    @property
    def is_begun(self) -> bool:
        return bool(self.samples or self._words)

    @property
    def playout_deadline_s(self) -> float:
        """When a listener who plays everything as it comes will have heard what was passed on, by
        the clock."""
        return self._playback.playout_deadline_s or 0.0

    def restart(self) -> None:
        started = self.is_begun
        self._again = _Repetition(self.samples, self._words, self._sum) if started else None

    def take(self, chunk: SpeechChunk) -> SpeechChunk | None:
        if self._again is not None:
            chunk = self._again.skip_replayed(chunk)
            if not len(chunk.samples) and not chunk.words:
                return None
        if len(chunk.samples):
            self._playback.take(self._clock(), len(chunk.samples) / self._sample_rate)
        self.samples += len(chunk.samples)
        self._words += len(chunk.words)
        self._sum = _compute_checksum(chunk.samples, self._sum)
        return chunk

    def check_end(self) -> None:
        if self._again is not None:
            self._again.check_end()


class _Repetition:
    def __init__(self, samples: int, words: int, checksum: int) -> None:
        self._samples_left, self._words_left = samples, words
        self._expected, self._sum = checksum, 0

    def skip_replayed(self, chunk: SpeechChunk) -> SpeechChunk:
        words = min(self._words_left, len(chunk.words))
        self._words_left -= words
        samples = min(self._samples_left, len(chunk.samples))
        if samples:
            self._samples_left -= samples
            self._sum = _compute_checksum(chunk.samples[:samples], self._sum)
            if not self._samples_left and self._sum != self._expected:
                raise ReplicaLost("another replica speaks the same request differently")
        return replace(
            chunk, samples=chunk.samples[samples:], words=chunk.words[words:], milestones=()
        )

    def check_end(self) -> None:
        if self._samples_left:
            raise ReplicaLost("another replica speaks the same request shorter")


def _compute_checksum(samples: Samples, before: int) -> int:
    return zlib.crc32(np.ascontiguousarray(samples).data, before) if samples.size else before


class AnswerReplay:
    """Text, calls of tools, the text's end and sound, each as far as it was passed on.
    `sample_rate`: Hz; 0 if the answer has no sound."""

    def __init__(self, sample_rate: int) -> None:
        self._sound, self._thought = ReplayDeduplicator(sample_rate), ThoughtReplay()
        self._text, self._calls, self._arguments = Characters(), Characters(), Characters()
        self._tokens = self._tokens_left = 0
        """Of the text that was passed on; those of a repetition that are still to be dropped."""
        self._has_ended = False

    @property
    def is_begun(self) -> bool:
        return (
            self._has_ended
            or self._sound.is_begun
            or self._thought.is_begun
            or any(part.passed_on for part in (self._text, self._calls, self._arguments))
        )

    @property
    def playout_deadline_s(self) -> float:
        return self._sound.playout_deadline_s

    def restart(self) -> None:
        self._sound.restart()
        self._thought.restart()
        for part in (self._text, self._calls, self._arguments):
            part.restart()
        self._tokens_left = self._tokens

    def take(self, event: AnswerEvent) -> AnswerEvent | None:
        match event:
            case SpeechChunk():
                return self._sound.take(event)
            case Thought():
                return self._thought.take(event)
            case AnswerDelta():
                return self._take_text(event)
            case CallStarted(name):
                return event if self._calls.take(f"{name}\n") else None
            case CallArguments(text):
                new = self._arguments.take(text)
                return CallArguments(new) if new else None
            case TextEnd():
                if self._has_ended:
                    return None
                self._has_ended = True
                return event
            case _:
                assert_never(event)

    def check_end(self) -> None:
        self._sound.check_end()
        self._thought.check_end()
        for part in (self._text, self._calls, self._arguments):
            part.check_end()

    def _take_text(self, delta: AnswerDelta) -> AnswerDelta | None:
        text = self._text.take(delta.text)
        old = min(self._tokens_left, delta.tokens)
        self._tokens_left -= old
        new = replace(delta, text=text, tokens=delta.tokens - old)
        if not new.text and not new.tokens:
            return None
        self._tokens += new.tokens
        return new


class ThoughtReplay:
    """A thought as far as it was passed on."""

    def __init__(self) -> None:
        self._words = Characters()
        self._tokens = self._tokens_left = 0
        """Those that were passed on, and those of a repetition that are still to be dropped."""

    @property
    def is_begun(self) -> bool:
        """Words were passed on."""
        return self._words.passed_on > 0

    def restart(self) -> None:
        self._words.restart()
        self._tokens_left = self._tokens

    def take(self, thought: Thought) -> Thought | None:
        text = self._words.take(thought.text)
        old = min(self._tokens_left, thought.tokens)
        self._tokens_left -= old
        self._tokens += thought.tokens - old
        return Thought(text, thought.tokens - old) if text or thought.tokens > old else None

    def check_end(self) -> None:
        self._words.check_end()


class Characters:
    """A text that arrives in pieces: how much of it was passed on, and how much of its repetition
    is therefore dropped."""

    def __init__(self) -> None:
        self.passed_on = 0
        """Characters."""
        self._sum = 0
        """CRC-32 of those."""
        self._left = self._sum_again = 0
        """Of a repetition: characters still to be dropped, and the CRC-32 of those that were."""

    def restart(self) -> None:
        """Expect the repetition from now on: `take` gets it from its beginning."""
        self._left, self._sum_again = self.passed_on, 0

    def take(self, text: str) -> str:
        """The new part of a piece. Raises ReplicaLost: the repetition is not what was passed on
        before."""
        old = min(self._left, len(text))
        if old:
            self._left -= old
            self._sum_again = zlib.crc32(text[:old].encode(), self._sum_again)
            if not self._left and self._sum_again != self._sum:
                raise ReplicaLost("another replica answers the same request differently")
        new = text[old:]
        self.passed_on += len(new)
        self._sum = zlib.crc32(new.encode(), self._sum)
        return new

    def check_end(self) -> None:
        """The text is over. Raises ReplicaLost: its repetition is shorter than what was passed
        on."""
        if self._left:
            raise ReplicaLost("another replica answers the same request shorter")
