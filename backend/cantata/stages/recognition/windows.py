"""The windows of sound that a recognition stage holds, and whose turn it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from cantata.contract.data.request import StageInput
from cantata.contract.data.transcripts import TranscriptUpdate
from cantata.contract.model.recognizer import Sound


@dataclass(slots=True)
class Window:
    """One request's sound, and how far it has been recognised."""

    inputs: StageInput
    batch: bool
    pieces: list[Sound] = field(default_factory=list)
    length: int = 0
    """Samples so far."""
    asked: int | None = None
    """When it was to be recognised, as a number in the order of asking; None: it was not."""
    complete: bool = False
    """No more sound follows."""
    covered: int = -1
    """Samples that `update` covers."""
    update: TranscriptUpdate | None = None
    is_sent: bool = True
    """Whether the client has `update`."""
    chunks: int = 0
    """Chunks that were sent."""

    @property
    def due(self) -> bool:
        """Whether it has sound that is to be recognised."""
        return self.asked is not None and self.covered < self.length

    @property
    def rank(self) -> tuple[bool, bool]:
        """Speakers before files, whole windows before the beginnings of others."""
        return self.batch, not self.complete

    def sound(self) -> Sound:
        """All samples so far."""
        if len(self.pieces) != 1:
            self.pieces = [np.concatenate(self.pieces) if self.pieces else np.zeros(0, np.float32)]
        return self.pieces[0]


def choose_next(windows: Mapping[str, Window], most: int) -> list[tuple[str, Window]]:
    """The windows to be recognised together: those of the first rank that is due, first come, first
    served. One of a later rank would make the others wait.

    Args:
        windows: by request.
        most: of them.
    """
    due = [item for item in windows.items() if item[1].due]
    first = min((window.rank for _, window in due), default=None)
    chosen = [item for item in due if item[1].rank == first]
    return sorted(chosen, key=lambda item: item[1].asked or 0)[:most]
