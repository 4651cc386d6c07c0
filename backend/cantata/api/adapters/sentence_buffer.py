"""Turns the text of one conversation turn into utterances, each sentence when it is complete."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from cantata.api.sessions.connection import Channel
from cantata.api.speech.utterance_queue import Mark, Speak
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import TextSpan
from cantata.text import TextPause, find_markup_spans, read_markup
from cantata.text.sentences import is_inside, iterate_line_starts, split_sentences, trimmed

_LONG_SENTENCE = 160
"""A longer sentence is cut at its last clause instead of being waited for."""
_CLAUSE_END = re.compile(r"[,;:\u2013\u2014](?=\s)")
_WHOLE_SENTENCE = re.compile(r"\S\s.*[.!?\u2026][\"')\]\u2019\u201d]*$", re.DOTALL)
"""Several words that end like a sentence; a language model's single token never does."""


class SentenceBuffer:
    """The text that is not a complete sentence yet.

    Args:
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
        self._line_start = True
        """`_rest` begins a line."""
        self.unfinished = False
        """Text was added that has not been flushed or cleared."""

    def add(self, text: str) -> None:
        """Append a message's text and speak complete sentences. It is accepted whole or not at all.

        Raises:
            InvalidRequest: it makes a piece that is too long to be spoken at once.
            Overloaded: too many pieces are waiting.
        """
        # Some clients send sentences without the space that would mark their end.
        whole = self._rest + text + (" " if _WHOLE_SENTENCE.search(text.strip()) else "")
        spans, rest = _cut(whole)
        longest = max([len(whole) - rest, *(span.end - span.start for span in spans)])
        if longest > self._max_characters:
            raise InvalidRequest(
                f"text has {longest} characters without the end of a sentence; at most "
                f"{self._max_characters} are spoken at a time. The message was dropped",
                param="text",
            )
        starts = list(iterate_line_starts(whole, spans, rest, line_start=self._line_start))
        pieces = [whole[span.start : span.end] for span in spans]
        self._channel.queue(
            [
                self._build_job(piece, line_start=line_start)
                for piece, line_start in zip(pieces, starts, strict=False)
                if _has_sound(piece)
            ]
        )
        self._rest, self._line_start = whole[rest:], starts[-1]
        self.unfinished = True

    def flush(self, mark: Mark | None = None) -> None:
        """Speak the rest too, then reach `mark`. Raises Overloaded: too many pieces are waiting;
        the rest stays."""
        rest = self._rest.strip()
        jobs = [self._build_job(rest, line_start=self._line_start)] if _has_sound(rest) else []
        self._channel.queue([*jobs, mark] if mark else jobs)
        self.clear()

    def clear(self) -> None:
        self._rest = ""
        self._line_start = True
        self.unfinished = False

    def _build_job(self, piece: str, *, line_start: bool) -> Speak:
        job = self._make_job(piece)
        return replace(job, request=replace(job.request, line_start=line_start))


def _cut(text: str) -> tuple[list[TextSpan], int]:
    """The pieces to be spoken, and where the rest begins."""
    spans, start = split_sentences(text)
    rest = text[start:]
    end = _find_last_clause_end(rest) if len(rest) > _LONG_SENTENCE else 0
    if not end:
        return spans, start
    spans.append(trimmed(text, TextSpan(start, start + end)))
    return spans, trimmed(text, TextSpan(start + end, len(text))).start


def _find_last_clause_end(text: str) -> int:
    """Where the last complete clause ends, outside all markup; 0: there is none."""
    marks = find_markup_spans(text)
    ends = [found.end() for found in _CLAUSE_END.finditer(text)]
    return max((end for end in ends if not is_inside(end - 1, marks)), default=0)


def _has_sound(text: str) -> bool:
    """Whether a piece has words, signs that may be words, or a pause; not an ellipsis alone."""
    try:
        parts = read_markup(text)
    except InvalidRequest:
        return True  # the client is told once it is to be spoken
    return any(isinstance(part, TextPause) or not part.is_silent for part in parts)
