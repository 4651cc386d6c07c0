"""What the engine keeps for each request: conditioning rows, frames so far, random numbers.

The stage makes a state when it accepts a request and frees it when the request ends; the runners
only look it up by request id. So preemption and recompute find the same rows and frames again,
and nothing has to be saved or restored when a runner drops its own bookkeeping.

Letters: S slots, P positions, D hidden size, W width of wide rows, A axes, Q codebooks, E columns,
Z noise, O options, L levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.model.embedding_source import CodeGuide, TalkerPrompt
from cantata.contract.model.upload import upload
from cantata.stages.ar.sampling import draw_counter_uniforms

CODE_0, RESIDUAL, STOP = range(3)
"""The levels that are drawn with separate options: code 0, the other codes, whether to stop."""

DRAWN_AT_ONCE = 64
"""Frames whose random numbers are drawn together. WHY not all of a request: it may have thousands,
of which few are made, and everybody waits for them between two steps."""
_ALL_DRAWN = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class LevelSampling:
    """How one level is drawn."""

    temperature: float
    """0 is greedy."""
    top_k: int = 0
    """0 means all."""
    top_p: float = 1.0


class NoiseSource(Protocol):
    """Makes what a request's latents begin with, as `Talker.draw_noise`."""

    def __call__(self, seed: int, num_frames: int, /) -> torch.Tensor: ...


@dataclass(frozen=True, slots=True)
class Layout:
    """What is kept for each position and each frame of a talker."""

    columns: int
    """Columns of a frame: Q or E."""
    dtype: torch.dtype
    """int64 codes, or float32 latents."""
    num_draws: int
    """Random numbers for choosing codes."""
    noise_size: int = 0
    """Z."""
    draw_noise: NoiseSource | None = None
    """None: Z is 0."""
    num_options: int = 0
    """O: numbers that each request has for its frames."""
    is_stepped: bool = False
    """Whether each request's frames take a number of steps."""
    row_width: int | None = None
    """Width of a conditioning row; None: D."""
    rotary_axes: int = 0
    """A; 0: positions are counted."""


@dataclass(frozen=True, slots=True)
class ResolvedSampling:
    """One request's sampling options with the deployment's defaults filled in."""

    seed: int
    code_0: LevelSampling
    residual: LevelSampling
    stop: LevelSampling
    repetition_penalty: tuple[float, float]
    """Of code 0 and of the other codes; 1 changes nothing."""
    use_penalty: tuple[float, float] = (0.0, 0.0)
    """Presence and frequency penalty of code 0; 0 changes nothing."""
    logprobs: bool = False
    """Whether the probabilities of codes 0 are kept."""
    top_logprobs: int = 0
    """Of how many of the likeliest codes, too."""
    code_bias: tuple[tuple[int, float], ...] = ()
    """Codes 0, and what is added to their scores."""


class RequestStates:
    """Slots by request id. One extra slot takes the output of padding.

    Tensors are indexed by slot on the device; what scheduling needs (lengths, counts) is kept on
    the host in NumPy arrays, so that a step never reads the device back.
    """

    def __init__(
        self,
        slots: int,
        max_model_len: int,
        layout: Layout,
        hidden_size: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self._layout = layout
        self.hidden_size = hidden_size
        self.scratch_slot = slots
        rows = slots + 1
        shape = (rows, max_model_len)
        self.rows = torch.zeros(*shape, layout.row_width or hidden_size, dtype=dtype, device=device)
        """[S+1, P, D or W]: conditioning rows by position."""
        self.positions = torch.zeros(*shape, layout.rotary_axes, device=device)
        """[S+1, P, A]: where each row stands."""
        self.frames = torch.zeros(*shape, layout.columns, dtype=layout.dtype, device=device)
        """[S+1, P, Q or E]: every frame so far."""
        self.uniforms = torch.zeros(*shape, layout.num_draws, dtype=torch.float32, device=device)
        """[S+1, P, draws]: each frame's random numbers; see `draw_ahead`."""
        self.noise = torch.zeros(*shape, layout.noise_size, dtype=torch.float32, device=device)
        """[S+1, P, Z]: what each frame of latents begins with, drawn when the request is added."""
        self.before_first = torch.zeros(rows, layout.columns, dtype=layout.dtype, device=device)
        """[S+1, Q or E]: the last frame of each request's context; zeros without one."""
        self.frame_options = torch.zeros(rows, layout.num_options, device=device)
        """[S+1, O]"""
        self.temperature = torch.zeros(rows, 3, dtype=torch.float32, device=device)
        """[S+1, L], as the next two."""
        self.top_k = torch.zeros(rows, 3, dtype=torch.int64, device=device)
        self.top_p = torch.ones(rows, 3, dtype=torch.float32, device=device)
        self.repetition_penalty = torch.ones(rows, 2, dtype=torch.float32, device=device)
        """[S+1, 2]: of code 0 and of the other codes."""
        self.use_penalty = torch.zeros(rows, 2, dtype=torch.float32, device=device)
        """[S+1, 2]: of code 0, presence and frequency."""

        self.frame_steps = np.zeros(rows, dtype=np.int64)
        """Steps of a frame; 0 in the extra slot."""
        self.prompt_len = np.ones(rows, dtype=np.int64)
        self.last_row = np.zeros(rows, dtype=np.int64)
        self.min_frames = np.zeros(rows, dtype=np.int64)
        self.num_frames = np.zeros(rows, dtype=np.int64)
        """Frames that have been computed; the next step's new frame has this index."""
        self.num_drawn = np.full(rows, _ALL_DRAWN)
        """Frames whose random numbers are there."""
        self.num_exported = np.zeros(rows, dtype=np.int64)
        """Positions whose rows have left."""
        self.is_sampled = np.zeros((rows, 3), dtype=bool)
        self.is_penalized = np.zeros((rows, 2), dtype=bool)
        self.has_logprobs = np.zeros(rows, dtype=bool)
        """Whose codes 0 leave with their probabilities."""
        self.num_top_logprobs = np.zeros(rows, dtype=np.int64)
        """How many of the likeliest codes leave with theirs."""
        self.guides: dict[int, CodeGuide] = {}
        """By slot, of the requests that have one, as the next."""
        self.code_bias: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        """[B] int64 codes 0 and [B] float32, added to their scores."""

        self._to_draw: dict[int, tuple[int, int]] = {}
        """By slot, the seed of its random numbers, and of how many frames there may be some."""
        self._slot_of: dict[str, int] = {}
        self._free = list(range(slots - 1, -1, -1))

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._slot_of

    def __len__(self) -> int:
        return len(self._slot_of)

    @property
    def num_bytes(self) -> int:
        """Bytes of all slots, on the device."""
        return sum(kept.nbytes for kept in vars(self).values() if isinstance(kept, torch.Tensor))

    @property
    def num_free(self) -> int:
        """Slots that a new request could take."""
        return len(self._free)

    def add(self, request_id: str, prompt: TalkerPrompt, sampling: ResolvedSampling) -> None:
        """Take a slot for a new request; the caller has checked that there is one.

        Whatever is raised (rows of another size, a seed that is not an integer, no steps for a
        talker's frames), the slot is taken and must be freed.

        Args:
            request_id: not held yet.
            prompt: fits max_model_len.
            sampling: how its codes are drawn.
        """
        slot = self._free.pop()
        self._slot_of[request_id] = slot
        num_rows = min(prompt.rows.shape[0], self.rows.shape[1])
        device = self.frames.device
        self.rows[slot, :num_rows] = upload(prompt.rows[:num_rows], device)
        if self._layout.rotary_axes:
            self._fill_positions(slot, prompt)
        self._fill_numbers(slot, prompt, sampling)
        if self._layout.draw_noise is not None:
            noise = self._layout.draw_noise(sampling.seed, prompt.max_frames)
            self.noise[slot, : prompt.max_frames] = upload(noise, device)
        self.before_first[slot] = 0
        if prompt.context is not None and len(prompt.context):
            self.before_first[slot] = upload(prompt.context[-1], device)
        if self._layout.is_stepped and prompt.frame_steps < 1:
            raise ValueError(f"a frame of {prompt.frame_steps} steps; there must be at least 1")
        self.frame_steps[slot] = prompt.frame_steps
        levels = (sampling.code_0, sampling.residual, sampling.stop)
        self.prompt_len[slot] = prompt.prompt_len
        self.last_row[slot] = num_rows - 1
        self.min_frames[slot] = prompt.min_frames
        self.num_frames[slot] = self.num_exported[slot] = 0
        self.is_sampled[slot] = [level.temperature > 0 for level in levels]
        self.is_penalized[slot] = np.array(sampling.repetition_penalty) != 1.0
        self.is_penalized[slot, 0] |= any(sampling.use_penalty)
        self.has_logprobs[slot] = sampling.logprobs
        self.num_top_logprobs[slot] = sampling.top_logprobs
        if prompt.guide is not None:
            self.guides[slot] = prompt.guide
        if sampling.code_bias:
            codes, added = zip(*sampling.code_bias, strict=True)
            self.code_bias[slot] = (
                upload(torch.tensor(codes), device),
                upload(torch.tensor(added, dtype=torch.float32), device),
            )

    def draw_ahead(self, slots: NDArray[np.int64], frames: NDArray[np.int64]) -> None:
        """Draw the next random numbers of requests that have none for the frame that they make.

        Args:
            slots: [R]
            frames: [R] index of each one's frame.
        """
        for slot in slots[frames >= self.num_drawn[slots]].tolist():
            first = int(self.num_drawn[slot])
            drawn = self._draw_portion(slot, first)
            self.uniforms[slot, first : first + len(drawn)] = upload(drawn, self.uniforms.device)

    def _draw_portion(self, slot: int, first: int) -> torch.Tensor:
        """[F, draws] the random numbers of the next frames, and note that they are there."""
        seed, num_frames = self._to_draw[slot]
        ends = min(first + DRAWN_AT_ONCE, num_frames)
        self.num_drawn[slot] = ends if ends < num_frames else _ALL_DRAWN
        return draw_counter_uniforms(seed, ends - first, self._layout.num_draws, first)

    def _fill_numbers(self, slot: int, prompt: TalkerPrompt, sampling: ResolvedSampling) -> None:
        """How a request's codes are drawn, and its first random numbers, in one upload."""
        levels = (sampling.code_0, sampling.residual, sampling.stop)
        numbers = (
            *(level.temperature for level in levels),
            *(level.top_p for level in levels),
            *sampling.repetition_penalty,
            *sampling.use_penalty,
            *prompt.frame_options,
        )
        top_k = torch.tensor([level.top_k for level in levels], dtype=torch.int32)
        self._to_draw[slot] = sampling.seed, prompt.max_frames
        drawn = self._draw_portion(slot, 0)
        shape = drawn.shape
        # The whole numbers travel by their bits.
        parts = (torch.tensor(numbers, dtype=torch.float32), top_k.view(torch.float32))
        there = upload(torch.cat([*parts, drawn.flatten()]), self.frames.device)
        targets = [self.temperature, self.top_p, self.repetition_penalty, self.use_penalty]
        targets.append(self.frame_options)
        sizes = [target.shape[1] for target in targets]
        *values, top_k, drawn = torch.split(there, [*sizes, len(levels), drawn.numel()])
        for target, value in zip(targets, values, strict=True):
            target[slot] = value
        self.top_k[slot] = top_k.view(torch.int32)
        self.uniforms[slot, : shape[0]] = drawn.view(shape)

    def extend(self, request_id: str, rows: torch.Tensor) -> int:
        """Append [L, D] conditioning rows; the caller has checked that they fit.

        Returns:
            How many rows the request has now.
        """
        slot = self._slot_of[request_id]
        start = int(self.last_row[slot]) + 1
        self.rows[slot, start : start + len(rows)] = upload(rows, self.rows.device)
        self.last_row[slot] = start + len(rows) - 1
        return start + len(rows)

    def _fill_positions(self, slot: int, prompt: TalkerPrompt) -> None:
        """Fill in where the request's positions stand, those to come too."""
        length, given = prompt.prompt_len, prompt.positions
        next_one = length if given is None else float(given.max()) + 1
        device = self.positions.device
        counted = torch.arange(self.positions.shape[1], device=device) + (next_one - length)
        self.positions[slot] = counted[:, None]
        if given is not None:
            self.positions[slot, :length] = upload(given.T, device)

    def free(self, request_id: str) -> None:
        """Give the slot back; unknown ids are fine."""
        slot = self._slot_of.pop(request_id, None)
        if slot is not None:
            self.guides.pop(slot, None)
            self.code_bias.pop(slot, None)
            self._to_draw.pop(slot, None)
            self.num_drawn[slot] = _ALL_DRAWN
            self._free.append(slot)

    def get_slot(self, request_id: str) -> int:
        """The slot of a request that is held."""
        return self._slot_of[request_id]

    def slot_or_scratch(self, request_id: str) -> int:
        """The slot of a request, or the scratch slot for a dummy one of a warm-up batch."""
        return self._slot_of.get(request_id, self.scratch_slot)
