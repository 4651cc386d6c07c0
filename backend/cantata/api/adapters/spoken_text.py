"""Text of one conversation turn on its way to utterances: each sentence as soon as it is there."""

from __future__ import annotations

import re
from collections.abc import Callable

from cantata.api.adapters.connection import Channel
from cantata.api.sentences import split_sentences
from cantata.api.speaker import Mark, Speak
from cantata.contract.errors import InvalidRequest

_LONG_SENTENCE = 160
"""Characters after which a sentence is not waited for but cut at its last clause."""
_CLAUSE = re.compile(r".*[,;:\u2013\u2014](?=\s)", re.DOTALL)
_WHOLE_SENTENCE = re.compile(r"\S\s.*[.!?\u2026][\"')\]\u2019\u201d]*$", re.DOTALL)
"""Several words that end like a sentence; a language model's single token never looks so."""


class SpokenText:
    """What has arrived and is no complete sentence yet.

    Args:
        channel: speaks the pieces.
        max_characters: the longest piece that may be spoken at once.
        make_job: a piece as an utterance.
    """

    def __init__(
        self, channel: Channel, max_characters: int, make_job: Callable[[str], Speak]
    ) -> None:
        self._channel = channel
        self._max_characters = max_characters
        self._make_job = make_job
        self._rest = ""

    def add(self, text: str) -> None:
        """Append a message's text and speak what is complete. All of it is taken or none.

        Raises:
            InvalidRequest: it makes a piece that is too long to be spoken at once.
            Overloaded: too many pieces wait.
        """
        pieces, rest = _cut(self._rest + text, ends=bool(_WHOLE_SENTENCE.search(text.strip())))
        longest = max(map(len, [*pieces, rest]))
        if longest > self._max_characters:
            raise InvalidRequest(
                f"{longest} characters without the end of a sentence are too many; at most "
                f"{self._max_characters} are spoken at a time; this message was dropped",
                param="text",
            )
        self._channel.queue([self._make_job(piece) for piece in pieces if _has_sound(piece)])
        self._rest = rest

    def flush(self, mark: Mark | None = None) -> None:
        """Speak the rest too; `mark` is reached behind it.

        Raises:
            Overloaded: too many pieces wait; the rest stays.
        """
        rest = self._rest.strip()
        speech = [self._make_job(rest)] if _has_sound(rest) else []
        self._channel.queue([*speech, mark] if mark else speech)
        self.clear()

    def clear(self) -> None:
        """Forget the rest."""
        self._rest = ""


def _cut(text: str, *, ends: bool) -> tuple[list[str], str]:
    """Pieces to be spoken, and the rest.

    Args:
        text: what has arrived.
        ends: the last message was a whole sentence: some clients send sentences without the space
            that would prove their end.
    """
    text += " " if ends else ""
    spans, start = split_sentences(text)
    pieces, rest = [text[span.start : span.end] for span in spans], text[start:]
    clause = _CLAUSE.match(rest) if len(rest) > _LONG_SENTENCE else None
    if clause is None:
        return pieces, rest
    return [*pieces, clause.group().strip()], rest[clause.end() :].lstrip()


def _has_sound(text: str) -> bool:
    return any(character.isalnum() for character in text)
