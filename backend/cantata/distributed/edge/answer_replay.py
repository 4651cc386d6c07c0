"""An answer that is repeated after a loss: the listener gets each character and sample once."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import assert_never

from cantata.contract.chat_service import AnswerDelta, AnswerEvent, TextEnd
from cantata.contract.data.chat import CallArguments, CallStarted, Thought
from cantata.contract.data.errors import ReplicaLost
from cantata.contract.service import SpeechChunk
from cantata.distributed.edge.replay import ReplayDeduplicator


class AnswerReplay:
    """Text, calls of tools, the text's end and sound, each as far as it was passed on.

    Args:
        sample_rate: Hz; 0 if the answer has no sound.
    """

    def __init__(self, sample_rate: int) -> None:
        self._sound, self._thought = ReplayDeduplicator(sample_rate), ThoughtReplay()
        self._text, self._calls, self._arguments = Characters(), Characters(), Characters()
        self._tokens = self._tokens_left = 0
        """Of the text that was passed on; those of a repetition that are still to be dropped."""
        self._has_ended = False

    @property
    def is_begun(self) -> bool:
        """Whether anything was passed on."""
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
        """From now on, `take` gets the repetition, from its beginning."""
        self._sound.restart()
        self._thought.restart()
        for part in (self._text, self._calls, self._arguments):
            part.restart()
        self._tokens_left = self._tokens

    def take(self, event: AnswerEvent) -> AnswerEvent | None:
        """The new part of an event; None if nothing in it is new.

        Raises:
            ReplicaLost: the repetition is not what was answered before.
        """
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
        """The answer is over.

        Raises:
            ReplicaLost: its repetition is shorter than what was passed on.
        """
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
        """From now on, `take` gets the repetition, from its beginning."""
        self._words.restart()
        self._tokens_left = self._tokens

    def take(self, thought: Thought) -> Thought | None:
        """The new part of it; None if nothing in it is new.

        Raises:
            ReplicaLost: the repetition is not what was thought before.
        """
        text = self._words.take(thought.text)
        old = min(self._tokens_left, thought.tokens)
        self._tokens_left -= old
        self._tokens += thought.tokens - old
        return Thought(text, thought.tokens - old) if text or thought.tokens > old else None

    def check_end(self) -> None:
        """The thought is over.

        Raises:
            ReplicaLost: its repetition is shorter than what was passed on.
        """
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
        """From now on, `take` gets the repetition, from its beginning."""
        self._left, self._sum_again = self.passed_on, 0

    def take(self, text: str) -> str:
        """The new part of a piece.

        Raises:
            ReplicaLost: the repetition is not what was passed on before.
        """
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
        """The text is over.

        Raises:
            ReplicaLost: its repetition is shorter than what was passed on.
        """
        if self._left:
            raise ReplicaLost("another replica answers the same request shorter")
