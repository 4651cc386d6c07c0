"""Which steps of an engine are recorded as CUDA graphs, and the shapes that steps are padded to.

Letters: B requests of a step, T positions of a prompt, L positions that attention reads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import torch

from cantata.stages.ar.slot_steps import EVERY_KIND, DecodeIndex, PromptIndex, SlotSteps, StepKind
from cantata.stages.common.graphs import ShapeGraphs, make_pool

logger = logging.getLogger(__name__)

DECODE_BATCHES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
PROMPT_BATCHES = (1, 2, 4)
MIN_READ = 256
"""Positions; a step reads twice, four times, ... as many if a request is longer."""
MIN_PROMPT = 16
MAX_PROMPT_ROWS = 512
"""B times T of a prompt's graph; longer prompts run one by one, without a graph."""

Step = Callable[[StepKind, int, torch.Tensor], torch.Tensor]
"""A kind of frames, L or T, and indices -> [B, Q]."""


@dataclass(frozen=True, slots=True)
class StepShapes:
    """What B, T and L are padded to, so that few graphs do for all steps."""

    slots: int
    positions: int
    """Of a request, at most."""

    def list_batches(self) -> list[int]:
        """B of decodes; the last one has all slots."""
        return [*(batch for batch in DECODE_BATCHES if batch < self.slots), self.slots]

    def list_lengths(self) -> list[int]:
        """L; the last one has all positions."""
        lengths, length = list[int](), MIN_READ
        while length < self.positions:
            lengths.append(length)
            length *= 2
        return [*lengths, self.positions]

    def list_prompts(self) -> list[int]:
        """T: 16, 32, 48, 64, then half-way to each power of two, and it; the last has all."""
        lengths, length, step = list[int](), MIN_PROMPT, MIN_PROMPT
        while length < self.positions:
            lengths.append(length)
            step = max(step, (1 << (length.bit_length() - 1)) // 2)
            length += step
        return [*lengths, self.positions]

    def list_prompt_batches(self, length: int) -> list[int]:
        """B of prompts that are padded to this T."""
        most = max(1, min(self.slots, MAX_PROMPT_ROWS // length))
        return [batch for batch in PROMPT_BATCHES if batch <= most]


def pad_to(count: int, sizes: list[int]) -> int:
    """The least of these sizes, in order, that holds so many."""
    return next(size for size in sizes if size >= count)


@dataclass(slots=True)
class _RecordedStep:
    """Graphs of one step for one kind of frames and one L or T, by B."""

    kind: StepKind
    size: int
    graphs: ShapeGraphs


@dataclass(slots=True)
class _StepFamily:
    """A step, and what is recorded of it, the fastest first."""

    run: Step
    recorded: list[_RecordedStep] = field(default_factory=list)


class StepGraphs:
    """Calls steps through their graphs, and plainly where there is none.

    Args:
        steps: of the engine.
        device: where they run; `ShapeGraphs` says what a replay is on another one than CUDA.
    """

    def __init__(self, steps: SlotSteps, device: torch.device) -> None:
        self._device = device
        self._decode, self._prefill = _StepFamily(steps.decode), _StepFamily(steps.prefill)
        self._pool = make_pool(device)

    def record(self, shapes: StepShapes, usual: StepKind, scratch: int) -> None:
        """Capture the steps. No request may be held: slots and lanes that are nobody's are used.

        Requests of the usual kind read as few positions as they need; all others share one graph
        for each B, which reads all.

        Args:
            usual: of requests that set nothing.
            scratch: the slot, and the lane, that are nobody's.
        """
        column, lengths = [scratch] + [0] * (len(DecodeIndex) - 1), shapes.list_lengths()
        for kind, size in [*((usual, length) for length in lengths), (EVERY_KIND, lengths[-1])]:
            self._capture(self._decode, kind, size, column, shapes.list_batches())
        column = [scratch, scratch] + [0] * (len(PromptIndex) - 2)
        for kind, size in product((usual, EVERY_KIND), shapes.list_prompts()):
            if size <= MAX_PROMPT_ROWS:
                batches = shapes.list_prompt_batches(size)
                self._capture(self._prefill, kind, size, column, batches)

    def decode(self, kind: StepKind, longest: int, indices: torch.Tensor) -> torch.Tensor:
        """As `SlotSteps.decode`."""
        return self._call(self._decode, kind, longest, indices, exact=False)

    def prefill(self, kind: StepKind, length: int, indices: torch.Tensor) -> torch.Tensor:
        """As `SlotSteps.prefill`."""
        return self._call(self._prefill, kind, length, indices, exact=True)

    def _capture(
        self, family: _StepFamily, kind: StepKind, size: int, column: list[int], batches: list[int]
    ) -> None:
        """Capture one step for every B; `column` is one that belongs to nobody."""
        graphs = ShapeGraphs(partial(family.run, kind, size), self._device, self._pool)
        try:
            # The largest first: the others find room in its scratch memory.
            for batch in reversed(batches):
                example = torch.tensor(column)[:, None].expand(-1, batch)
                with _usual_attention(self._device):
                    graphs.capture(example)
        except RuntimeError as error:  # torch's only one: no memory, a value is read, ...
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            logger.warning("no CUDA graph of a step of size %d, so it is called: %s", size, reason)
        family.recorded.append(_RecordedStep(kind, size, graphs))

    def _call(
        self, family: _StepFamily, kind: StepKind, size: int, indices: torch.Tensor, *, exact: bool
    ) -> torch.Tensor:
        for step in family.recorded:
            fits = step.size == size if exact else step.size >= size
            if fits and step.kind.covers(kind) and step.graphs.holds(indices):
                return step.graphs(indices).clone()
        return family.run(kind, size, indices)


def _usual_attention(device: torch.device) -> AbstractContextManager[None]:
    """Without cuDNN's attention: it plans each new shape for a third of a second."""
    if device.type != "cuda":
        return nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    kernels = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    return sdpa_kernel(kernels)
