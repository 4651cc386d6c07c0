"""One text as it is spoken: the pieces that a pipeline runs and the silences between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from cantata.contract.chunks import WordTiming
from cantata.contract.errors import InvalidRequest, RequestFailed
from cantata.contract.markup import Passage, Pause, split_pauses
from cantata.contract.plugin import RequestBuilder
from cantata.contract.request import PipelineRequest, SpeechRequest
from cantata.contract.service import SpokenWord


@dataclass(frozen=True, slots=True)
class Piece:
    """What the pipeline runs in one go."""

    request: PipelineRequest
    text_offset: int
    """Where the text that it was built from stands in the caller's."""


def plan_utterance(
    builder: RequestBuilder, request_id: str, request: SpeechRequest, *, batch: bool
) -> list[Piece | Pause]:
    """Cut a text at its pauses and build the pieces between them.

    Raises:
        InvalidRequest: nothing in it can be spoken, or a pause or an option cannot be served.
    """
    parts: list[Piece | Pause] = []
    silent: InvalidRequest | None = None
    for number, part in enumerate(split_pauses(request.text)):
        if isinstance(part, Pause):
            parts.append(part)
            continue
        try:
            built = builder.build(f"{request_id}.{number}", replace(request, text=part.text))
        except InvalidRequest as error:
            if _has_words(part):
                raise
            silent = error  # a full stop behind a pause is no fault, unless there is nothing else
            continue
        parts.extend(Piece(replace(piece, batch=batch), part.start) for piece in built)
    if not request.continued and not any(isinstance(part, Piece) for part in parts):
        raise silent or InvalidRequest("the text is empty or has only pauses", "input")
    return parts


class Playback:
    """A listener who plays an utterance from its first sample on, as it comes.

    Args:
        sample_rate: Hz.
        clock: the stages' too.
    """

    def __init__(self, sample_rate: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._sample_rate = sample_rate
        self._clock = clock
        self._samples = 0
        self.runs_dry_s: float | None = None
        """When all that has come is played, by the clock; None: nothing has come."""

    @property
    def length_s(self) -> float:
        """Seconds of sound so far."""
        return self._samples / self._sample_rate

    def arrived(self, samples: int) -> None:
        """So much more is there now."""
        now_s = self._clock()
        self._samples += samples
        self.runs_dry_s = max(self.runs_dry_s or now_s, now_s) + samples / self._sample_rate


def spoken_words(
    piece: Piece, timings: Iterable[WordTiming], began_s: float
) -> tuple[SpokenWord, ...]:
    """A piece's timings in the caller's text and on the utterance's clock.

    Words of one span, such as those of a number, become one.

    Args:
        began_s: when the piece's first sample is heard.

    Raises:
        RequestFailed: the stage timed a word that the piece does not have.
    """
    words: list[SpokenWord] = []
    spans = piece.request.words
    for timing in timings:
        if not 0 <= timing.index < len(spans):
            raise RequestFailed(f"word {timing.index} of {len(spans)} was timed")
        span = spans[timing.index]
        word = SpokenWord(
            text_start=piece.text_offset + span.start,
            text_end=piece.text_offset + span.end,
            start_s=began_s + timing.start_s,
            end_s=began_s + timing.end_s,
        )
        if words and (words[-1].text_start, words[-1].text_end) == (word.text_start, word.text_end):
            word = replace(words.pop(), end_s=word.end_s)
        words.append(word)
    return tuple(words)


def _has_words(passage: Passage) -> bool:
    return any(character.isalnum() for character in passage.text)
