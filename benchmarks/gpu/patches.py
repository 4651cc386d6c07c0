"""VoxCPM2's patches: time to complete one patch of each of R requests, and to embed it.

Letters: R requests, P latents of a patch, C numbers of a latent, H hidden size.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from cantata.stages.common.graphs import ShapeGraphs
from cantata_layers.random_tensors import write_json
from cantata_models.voxcpm2.config import VoxCpm2Config, load_codec_config, load_config
from cantata_models.voxcpm2.patch_solver import Conditions, PatchEncoder, PatchSolver
from cantata_models.voxcpm2.prompt import DEFAULT_STEPS
from cantata_models.voxcpm2.random_checkpoint import PUBLISHED, TINY
from gpu.random_weights import randomized, serving_dtype
from gpu.timing import Compared, compared

BATCHES = (1, 2, 4, 8, 16)
STEPS = (4, DEFAULT_STEPS)
TINY_BATCHES = (1, 3)


@dataclass(frozen=True, slots=True)
class PatchRow:
    """Timings for one number of requests and of steps."""

    steps: int
    batch: int
    audio_s: float
    """Sound of the patches that are completed."""
    step: Compared


class PatchStep:
    """The solver, then the local encoder; random weights."""

    def __init__(self, config: VoxCpm2Config, device: torch.device, steps: int) -> None:
        self._solver = randomized(PatchSolver(config), device)
        self._encoder = randomized(PatchEncoder(config), device)
        self._config, self._device, self._steps = config, device, steps

    def inputs(self, requests: int) -> tuple[torch.Tensor, ...]:
        """Random inputs: noise and the patches before [R, P, C], hidden states [R, 2, H], guidance
        [R]."""
        config, device = self._config, self._device
        patch, dtype = (config.patch_size, config.latent_dim), serving_dtype(device)

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(requests, *shape, device=device, dtype=dtype)

        return normal(*patch), normal(*patch), normal(2, config.dit.hidden_size), 2.0 + normal()

    def __call__(
        self,
        noise: torch.Tensor,
        previous: torch.Tensor,
        hidden: torch.Tensor,
        guidance: torch.Tensor,
    ) -> torch.Tensor:
        """[R, P * C + H]: the patches and their rows."""
        given = Conditions(hidden=hidden, previous=previous, guidance=guidance)
        output = self._solver(noise, given, (self._steps,) * len(noise))
        return torch.cat([output.flatten(1), self._encoder(output)], dim=1)


def shape(tiny: bool) -> tuple[VoxCpm2Config, float]:
    """A config, and the seconds of sound in a patch, without any weights."""
    with tempfile.TemporaryDirectory() as folder:
        write_json(Path(folder) / "config.json", TINY if tiny else PUBLISHED)
        return load_config(Path(folder)), load_codec_config(Path(folder)).patch_seconds


def measure(checkpoint: Path, device: torch.device, tiny: bool) -> Iterator[PatchRow]:
    """Every number of requests, of few steps and of the usual ones; `checkpoint` is not used."""
    config, seconds = shape(tiny)
    for steps in STEPS:
        complete = PatchStep(config, device, steps)
        graphs = ShapeGraphs(complete, device)
        for batch in TINY_BATCHES if tiny else BATCHES:
            yield PatchRow(
                steps=steps,
                batch=batch,
                audio_s=batch * seconds,
                step=compared(complete, graphs, complete.inputs(batch), device),
            )
