"""Transcripts of spoken answers: later requests name an answer by its id alone."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

from cachetools import TTLCache

from cantata.contract.data.errors import InvalidRequest

KEPT_S = 3600
MAX_CHARACTERS = 8 << 20
"""Most characters of all transcripts together."""
_CHARACTERS_EACH = 256
"""Counted for each entry in addition to its text, so that their number is bounded, too."""


class Transcripts:
    """The latest spoken answers of one server, each for an hour; the oldest go first."""

    def __init__(
        self, max_characters: int = MAX_CHARACTERS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._kept: TTLCache[str, str] = TTLCache(
            max_characters, KEPT_S, timer=clock, getsizeof=lambda text: len(text) + _CHARACTERS_EACH
        )

    def keep(self, audio_id: str, transcript: str) -> int:
        """Keep an answer.

        Returns:
            Unix time at which it is forgotten.
        """
        # A longer one is not kept at all.
        if len(transcript) + _CHARACTERS_EACH <= self._kept.maxsize:
            self._kept[audio_id] = transcript
        return int(time.time()) + KEPT_S

    def find(self, audio_id: str, param: str) -> str:
        """The transcript of an answer. Raises InvalidRequest: no answer has this id, or it has been
        forgotten."""
        transcript = self._kept.get(audio_id)
        if transcript is None:
            raise InvalidRequest(
                f"{param}: no spoken answer has the id {audio_id!r}, or it has expired; send its "
                "transcript as content instead",
                param,
            )
        return transcript


def make_audio_id() -> str:
    """An id that nobody can guess: it gives access to the answer's text."""
    return f"audio_{uuid.uuid4().hex}"
