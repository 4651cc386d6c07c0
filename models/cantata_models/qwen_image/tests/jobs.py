"""Pictures to draw from random embeddings, for tests of the denoiser alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.model.denoiser import Denoiser
from cantata_layers.qwen_image.config import few_steps_schedule
from cantata_layers.qwen_image.schedule import noise_shares
from cantata_layers.qwen_image.stages.pipeline import (
    CONDITION,
    NEGATIVE,
    REFERENCES,
    DenoiseInput,
    GridSize,
)
from cantata_models.qwen_image.random_checkpoint.shapes import TINY

TOKEN_WIDTH = 64


@dataclass(frozen=True, slots=True)
class Asked:
    """One picture; the seed makes its prompts too."""

    seed: int
    grid: GridSize = (4, 6)
    steps: int = 12
    guidance: float = 4.0
    references: tuple[GridSize, ...] = ()
    words: int = 9

    def inputs(self) -> DenoiseInput:
        """For the stage."""
        shares = noise_shares(few_steps_schedule(), self.steps, self.grid[0] * self.grid[1])
        return DenoiseInput(self.seed, self.grid, shares, self.guidance, self.references)

    def arrived(self) -> Mapping[str, Payload]:
        """What the encoders would make."""
        random = np.random.RandomState(self.seed)
        tokens = sum(height * width for height, width in self.references)
        rows = {CONDITION: self.words, NEGATIVE: 3}
        made = {port: Rows(_values(random, count, TINY.text_width)) for port, count in rows.items()}
        return made | {REFERENCES: Rows(_values(random, tokens, TOKEN_WIDTH))}


def drawn(model: Denoiser, asked: Sequence[Asked]) -> list[NDArray[np.float32]]:
    """[steps, N, P] latents of each picture, all drawn together as long as they have steps left."""
    jobs = [model.begin(one.inputs(), one.arrived()) for one in asked]
    made: list[list[NDArray[np.float32]]] = [[] for _ in jobs]
    for step in range(max(one.steps for one in asked)):
        left = [number for number, one in enumerate(asked) if step < one.steps]
        advance(model, [jobs[number] for number in left])
        for number in left:
            made[number].append(model.latents(jobs[number]))
    return [np.stack(latents) for latents in made]


def advance(model: Denoiser, jobs: Sequence[Any]) -> None:
    """A step of each, none of which fails; together only where the model allows it."""
    groups = dict.fromkeys(model.group(job) for job in jobs)
    for group in groups:
        together = [job for job in jobs if model.group(job) == group]
        assert model.advance(together) == [None] * len(together)


def _values(random: np.random.RandomState, rows: int, columns: int) -> NDArray[np.float32]:
    return random.standard_normal((rows, columns)).astype(np.float32)
