"""MOSS-TTS's local transformer: time to complete one frame of each of R requests.

Letters: R requests, D hidden size, Q codebooks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from cantata.stages.common.graphs import ShapeGraphs
from cantata_layers.random_tensors import write_json
from cantata_models.moss_tts import random_checkpoint_talker
from cantata_models.moss_tts.config import (
    FRAME_PERIOD_S,
    MossConfig,
    load_local_config,
    load_nano_config,
)
from cantata_models.moss_tts.frame_network import FrameNetwork
from cantata_models.moss_tts.random_checkpoint_talker import local_config, nano_config
from gpu.random_weights import randomized, same_draws, serving_dtype
from gpu.timing import Compared, compared

BATCHES = (1, 2, 4, 8, 16, 32, 64)
TINY_BATCHES = (1, 3)


@dataclass(frozen=True, slots=True)
class FrameRow:
    """Timings for one number of requests."""

    model: str
    """local or nano."""
    sampled: bool
    """Else greedy."""
    batch: int
    audio_s: float
    """Sound of the frames that one step completes."""
    step: Compared


class FrameStep:
    """The step as a recorded talker makes it, from the hidden state on; random weights.

    Args:
        config: of a checkpoint; its own sampling of codes is used, without a penalty.
        sampled: draw codes; else take the best.
    """

    def __init__(self, config: MossConfig, device: torch.device, sampled: bool) -> None:
        self._network = randomized(FrameNetwork(config), device)
        self._config, self._device, self._sampled = config, device, sampled

    def inputs(self, requests: int) -> tuple[torch.Tensor, ...]:
        """Random inputs: hidden states [R, D], first codes [R], uniform numbers [R, Q]."""
        config, device = self._config, self._device
        size, dtype = config.local.hidden_size, serving_dtype(device)
        return (
            torch.randn(requests, size, device=device, dtype=dtype),
            torch.randint(config.codebook_size, (requests,), device=device),
            torch.rand(requests, config.num_codebooks, device=device),
        )

    def __call__(
        self, hidden: torch.Tensor, code0: torch.Tensor, uniforms: torch.Tensor
    ) -> torch.Tensor:
        """[R, Q] int64 codes."""
        how = self._config.generation.audio
        draws = same_draws(uniforms, self._sampled, how.temperature, how.top_k, how.top_p)
        return self._network.complete(self._network.begin(hidden), code0, draws.choose)


def configs(tiny: bool) -> dict[str, MossConfig]:
    """Configurations of both models, by name, without any weights."""
    local = random_checkpoint_talker.TINY_LOCAL if tiny else random_checkpoint_talker.LOCAL
    nano = random_checkpoint_talker.TINY_NANO if tiny else random_checkpoint_talker.NANO
    with tempfile.TemporaryDirectory() as folder:
        write_json(Path(folder) / "config.json", local_config(local))
        found: dict[str, MossConfig] = {"local": load_local_config(Path(folder))}
        write_json(Path(folder) / "config.json", nano_config(nano))
        return found | {"nano": load_nano_config(Path(folder))}


def measure(checkpoint: Path, device: torch.device, tiny: bool) -> Iterator[FrameRow]:
    """Every number of requests of both models, greedy and sampled; `checkpoint` is not used."""
    for model, config in configs(tiny).items():
        for sampled in (False, True):
            complete = FrameStep(config, device, sampled)
            graphs = ShapeGraphs(complete, device)
            for batch in TINY_BATCHES if tiny else BATCHES:
                yield FrameRow(
                    model=model,
                    sampled=sampled,
                    batch=batch,
                    audio_s=batch * FRAME_PERIOD_S,
                    step=compared(complete, graphs, complete.inputs(batch), device),
                )
