"""A stage in the thinker's place, which sends the rows that the reference's thinker made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload, Rows


@dataclass(frozen=True, slots=True)
class Recorded:
    """Its input: the rows."""

    rows: NDArray[np.float32]


class RecordedThinker:
    """Implements `contract.model.feed_forward.FeedForward`."""

    def key(self, inputs: Recorded) -> None:
        """Nothing is kept."""

    def run(self, batch: Sequence[Recorded]) -> Sequence[Mapping[str, Payload]]:
        """Pass the rows on."""
        return [{"rows": Rows(inputs.rows)} for inputs in batch]


def load(checkpoint: Path, device: torch.device) -> RecordedThinker:
    """The stage's factory."""
    return RecordedThinker()
