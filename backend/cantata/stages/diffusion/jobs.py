"""What a diffusion stage holds: pictures and texts that await inputs, and those that advance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import Chunk, Codes, Payload, Progress, Rows
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.data.request import StageInput
from cantata.contract.model.denoiser import Denoiser
from cantata.contract.model.pipeline import CODES, LATENTS, PROGRESS
from cantata.scheduling.step_plan import JobView, OutputLengthEstimator
from cantata.stages.common.intake import InputCollector

_NO_PIXELS = np.zeros((0, 0, 3), np.uint8)
_NO_TOKENS = np.zeros(0, np.int32)


@dataclass(slots=True)
class DiffusionJob:
    """One request. It has begun once its model has made a state of its inputs."""

    request_id: str
    inputs: StageInput
    batch: bool
    deadline_s: float
    arrived_s: float
    arrivals: InputCollector
    draws: bool = True
    """It leaves latents, and progress; otherwise text alone."""
    state: Any = None
    """The model's; None: not begun."""
    steps: int = 0
    done: int = 0
    """Steps."""
    shown: frozenset[int] = frozenset()
    """After which steps there is a preview."""
    reports: int = 0
    """Reports of its progress that were sent."""
    reported_s: float = 0.0
    """When something of it left, or it began."""
    texts: int = 0
    """Chunks of its text, sent so far."""

    def begin(self, model: Denoiser) -> None:
        """Raises whatever the model raises."""
        self.state = model.begin(self.inputs, self.arrivals.payloads)
        self.update(model)

    def update(self, model: Denoiser) -> None:
        """Learn how many steps there are: a model may find on the way that it needs fewer."""
        steps = model.steps(self.state)
        if steps != self.steps:
            self.steps = steps
            self.shown = choose_preview_steps(model.previews(self.state), steps)

    def view(self, model: Denoiser, usual: OutputLengthEstimator) -> JobView:
        """The job as the plan sees it. `usual`: of texts, in steps."""
        left, size, later = self.steps - self.done, model.size(self.state), None
        if not self.draws:
            # Whatever it reads in the next step, then it writes a token behind all that.
            left, later = usual.left(left), ForwardSize(1, math.ceil(size.pairs / size.tokens))
        return JobView(
            self.request_id,
            size,
            steps=self.done + left,
            steps_left=left,
            arrived_s=self.arrived_s,
            group=model.group(self.state),
            deadline_s=self.deadline_s,
            batch=self.batch,
            later=later,
        )

    def report(self, pixels: NDArray[np.uint8] | None, now_s: float) -> Chunk[Payload]:
        """Its progress, with a preview or without."""
        shown = _NO_PIXELS if pixels is None else pixels
        payload = Progress(shown, self.done, self.steps)
        final = self.done == self.steps
        chunk: Chunk[Payload] = Chunk(self.request_id, PROGRESS, self.reports, payload, final)
        self.reports += 1
        self.reported_s = now_s
        return chunk

    def result(self, latents: NDArray[np.float32]) -> Chunk[Payload]:
        """What the next stage gets."""
        return Chunk(self.request_id, LATENTS, 0, Rows(latents), final=True)

    def text(self, tokens: NDArray[np.int32], now_s: float) -> Chunk[Payload]:
        """What it wrote in its last step, [T]."""
        payload, final = Codes(tokens[:, None]), self.done == self.steps
        chunk: Chunk[Payload] = Chunk(self.request_id, CODES, self.texts, payload, final)
        self.texts += 1
        self.reported_s = now_s
        return chunk

    def sign_of_life(self, now_s: float) -> Chunk[Payload]:
        """Its progress once more, or no text."""
        return self.report(None, now_s) if self.draws else self.text(_NO_TOKENS, now_s)


def choose_preview_steps(previews: int, steps: int) -> frozenset[int]:
    """After which of `steps` steps to show `previews` pictures: evenly spread, and none after the
    last one, which makes the picture itself."""
    count = min(previews, steps - 1)
    return frozenset(math.ceil(steps * (index + 1) / (count + 1)) for index in range(count))
