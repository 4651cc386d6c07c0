"""What the request builder gives the stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.data.errors import ProtocolViolation
from cantata.contract.data.request import SamplingOptions, StageInput
from cantata.contract.model.embedding_source import TalkerPrompt


@dataclass(frozen=True, slots=True)
class Qwen25OmniTalkerInput:
    """How to speak an answer. What to say comes from the thinker, as rows."""

    prompt_rows: int
    """P, the thinker's prompt tokens: so many rows come before the answer's."""
    speaker: str
    max_frames: int | None = None
    """None for as many as the reference allows."""
    positions: NDArray[np.float32] | None = None
    """[3, P + 2]: the thinker's rotary positions (time, height, width) of its prompt and of the two
    tokens behind it. None: 0, 1, 2, ... on each axis, as without pictures."""
    sampling: SamplingOptions = field(default_factory=SamplingOptions)


@dataclass(frozen=True, slots=True)
class Token2WavInput:
    """Whose voice it is."""

    speaker: str
    seed: int = 0
    """Of the noise from which the sound is made."""


BEHIND_PROMPT = 2
"""Positions that are prefilled behind the thinker's prompt: the speaker, the answer's first row."""


@dataclass(frozen=True, slots=True)
class FixedRows:
    """Rows that are not the thinker's, each [D]."""

    speaker: torch.Tensor
    """Behind the prompt's rows: announces the speaker, with the pad code."""
    start: torch.Tensor
    """What is added to the answer's first row: the start code."""
    end: torch.Tensor
    """In the place of the token that ended the answer."""
    pad: torch.Tensor
    """Behind that, for ever."""


class Qwen25OmniAnswerRows:
    """Implements `contract.model.row_source.EmbeddingSource`.

    Speech begins with the answer's first row and gains a row with each further token; the end
    repeats the last.

    Args:
        fixed: the rows that are not the thinker's.
        project: [L, E] rows of the thinker -> [L, D].
        max_frames: the most that may be spoken.
    """

    def __init__(
        self,
        inputs: Qwen25OmniTalkerInput,
        fixed: FixedRows,
        project: Callable[[torch.Tensor], torch.Tensor],
        max_frames: int,
    ) -> None:
        self._inputs, self._fixed, self._project = inputs, fixed, project
        self._max_frames = max_frames
        self._rows = fixed.pad.new_zeros(0, len(fixed.pad))
        """Not given away yet."""
        self.open = True

    def feed(self, item: StageInput | Payload, *, final: bool) -> None:
        """Take rows of the thinker. Raises ProtocolViolation: these are not rows, or the answer is
        complete."""
        if not isinstance(item, Rows):
            raise ProtocolViolation(f"this request takes Rows, not {type(item).__name__}")
        if not self.open:
            raise ProtocolViolation("the answer of this request is complete")
        parts = [self._rows, self._project(torch.from_numpy(item.values))]
        if final:
            parts += [self._fixed.end[None], self._fixed.pad[None]]
        self._rows, self.open = torch.cat(parts), not final

    def prompt(self) -> TalkerPrompt | None:
        """The prompt's rows and what begins the answer, once its first row is there. An answer
        without a row is not spoken."""
        inputs, fixed, count = self._inputs, self._fixed, self._inputs.prompt_rows
        ending = 0 if self.open else 2
        if len(self._rows) - ending <= count:
            if self.open:
                return None
            return TalkerPrompt(fixed.pad[:0, None], prompt_len=0, max_frames=0)
        started, self._rows = self._rows[: count + 1], self._rows[count + 1 :]
        rows = [started[:count], fixed.speaker[None], started[count:] + fixed.start]
        later = self.more()
        rows += [] if later is None else [later]
        positions = inputs.positions
        return TalkerPrompt(
            rows=torch.cat(rows),
            prompt_len=count + BEHIND_PROMPT,
            max_frames=self._max_frames,
            sampling=inputs.sampling,
            positions=None if positions is None else torch.from_numpy(positions),
        )

    def more(self) -> torch.Tensor | None:
        """The rows that have come since: [L, D]."""
        rows, self._rows = self._rows, self._rows[:0]
        return rows if len(rows) else None
