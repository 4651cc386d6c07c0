"""The whole step of Qwen3-TTS's talker: rows, backbone, scores, penalty, code 0 and the code
predictor, as `engine: graphs` runs it.

Letters: B requests, T positions of a prompt, L positions that attention reads, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from cantata.contract.model.plain_talker import PlainTalkerOptions
from cantata.stages.ar.request_state import RequestStates
from cantata.stages.ar.slot_steps import DecodeIndex, PromptIndex, SlotSteps, StepKind
from cantata.stages.ar.talker_step import get_layout
from cantata.stages.ar.torch_kernels import TorchKernels
from cantata.stages.common.graphs import ShapeGraphs
from cantata_models.qwen3_tts.config import FRAME_PERIOD_S
from cantata_models.qwen3_tts.plain_talker import load_plain_talker
from gpu.random_weights import serving_dtype
from gpu.timing import Compared, compared

POSITIONS, TINY_POSITIONS = 1024, 64
"""Of a request, at most."""
BATCHES, TINY_BATCHES = (1, 12, 64), (1, 3)
LENGTHS, TINY_LENGTHS = (256, 1024), (64,)
PROMPTS, TINY_PROMPTS = (16, 32, 64), (16,)
PROMPT_BATCHES, TINY_PROMPT_BATCHES = (1, 4), (2,)
KINDS = {
    "greedy": StepKind(False, False, False, False),
    "sampled": StepKind(True, True, True, False),
}
"""As the model's defaults have it: sampled, with a penalty on repeated codes 0."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """Timings of one step."""

    step: str
    """decode or prompt."""
    kind: str
    """Of `KINDS`."""
    batch: int
    positions: int
    """L or T."""
    audio_s: float
    """Sound of the frames that it makes."""
    time: Compared


class TalkerSteps:
    """The steps of a loaded talker, and the states of requests that do not end.

    Args:
        slots: most of B.
        positions: most of L and T.
    """

    def __init__(self, checkpoint: Path, device: torch.device, slots: int, positions: int) -> None:
        dtype = serving_dtype(device)
        options = PlainTalkerOptions(TorchKernels(dtype), device, dtype, positions)
        talker = load_plain_talker(checkpoint, options)
        with device:
            memory = talker.attention(slots + 1, positions)
        states = RequestStates(
            slots, positions, get_layout(talker), talker.hidden_size, dtype, device
        )
        states.rows.normal_()
        states.uniforms.uniform_()
        states.temperature.fill_(0.9)
        states.top_k.fill_(50)
        states.repetition_penalty.fill_(1.05)
        self._device, self._steps = device, SlotSteps(talker, states, memory)  # type: ignore[arg-type]

    def prepare_decode(
        self, kind: StepKind, longest: int, batch: int
    ) -> tuple[partial[torch.Tensor], torch.Tensor]:
        """A position of each of B requests, half-way through L: the step and its indices."""
        half = longest // 2
        rows = {
            DecodeIndex.POSITION: half,
            DecodeIndex.FED_BACK: half - 9,
            DecodeIndex.FRAME: half - 8,
        }
        indices = torch.zeros(len(DecodeIndex), batch, dtype=torch.int64, device=self._device)
        for row, value in {**rows, DecodeIndex.ROW: 8, DecodeIndex.MAY_END: 1}.items():
            indices[row] = value
        indices[DecodeIndex.SLOT] = torch.arange(batch, device=self._device)
        return partial(self._steps.decode, kind, longest), indices

    def prepare_prefill(
        self, kind: StepKind, length: int, batch: int
    ) -> tuple[partial[torch.Tensor], torch.Tensor]:
        """Prompts of T positions of B requests, and their first frames; likewise."""
        indices = torch.zeros(len(PromptIndex), batch, dtype=torch.int64, device=self._device)
        indices[PromptIndex.SLOT] = indices[PromptIndex.LANE] = torch.arange(
            batch, device=self._device
        )
        indices[PromptIndex.LAST] = length - 1
        return partial(self._steps.prefill, kind, length), indices

    def time(self, step: partial[torch.Tensor], indices: torch.Tensor) -> Compared:
        """A call and its graph."""
        return compared(step, ShapeGraphs(step, self._device), (indices,), self._device)


def measure(checkpoint: Path, device: torch.device, tiny: bool) -> Iterator[StepRow]:
    """Decodes, then prompts, of every kind and shape."""
    batches, lengths = (TINY_BATCHES, TINY_LENGTHS) if tiny else (BATCHES, LENGTHS)
    prompt_batches, prompts = (
        (TINY_PROMPT_BATCHES, TINY_PROMPTS) if tiny else (PROMPT_BATCHES, PROMPTS)
    )
    steps = TalkerSteps(checkpoint, device, max(batches), TINY_POSITIONS if tiny else POSITIONS)
    for name, kind in KINDS.items():
        for batch, length in _cross(batches, lengths):
            time = steps.time(*steps.prepare_decode(kind, length, batch))
            yield StepRow("decode", name, batch, length, batch * FRAME_PERIOD_S, time)
        for batch, length in _cross(prompt_batches, prompts):
            time = steps.time(*steps.prepare_prefill(kind, length, batch))
            yield StepRow("prompt", name, batch, length, batch * FRAME_PERIOD_S, time)


def _cross(batches: Sequence[int], sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    return ((batch, size) for size in sizes for batch in batches)
