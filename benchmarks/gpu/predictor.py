"""The code predictor: time to complete one frame of each of R requests.

Letters: R requests, D the talker's width, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from cantata.stages.common.graphs import ShapeGraphs
from cantata_layers.code_predictor import CodePredictor
from cantata_models.qwen3_tts.config import FRAME_PERIOD_S, Qwen3TtsConfig, load_config
from gpu.random_weights import randomized, same_draws, serving_dtype
from gpu.timing import Compared, compared

BATCHES = (1, 2, 4, 8, 16, 32, 64)
TINY_BATCHES = (1, 3)


@dataclass(frozen=True, slots=True)
class PredictorRow:
    """Timings for one number of requests."""

    sampled: bool
    """Else greedy."""
    batch: int
    audio_s: float
    """Sound of the frames that one step completes."""
    step: Compared


class FrameCompletion:
    """The step as the talker makes it, with random weights: speed depends on shapes alone.

    Args:
        config: of a checkpoint; its own sampling of the residual codes is used.
        sampled: draw codes; else take the best.
    """

    def __init__(self, config: Qwen3TtsConfig, device: torch.device, sampled: bool) -> None:
        width = config.talker.hidden_size
        with device:
            predictor = CodePredictor(config.predictor, width, config.num_codebooks)
        self._predictor = randomized(predictor, device)
        self._predictor.project_embeddings()
        self._settings = config.generation.residual
        self._sampled = sampled
        self._width, self._codebooks = config.talker.hidden_size, config.num_codebooks
        self._device, self._dtype = device, serving_dtype(device)

    def inputs(self, requests: int) -> tuple[torch.Tensor, ...]:
        """Random inputs: hidden states and embedded first codes [R, D], uniform numbers [R, Q]."""
        rows = torch.randn(2, requests, self._width, device=self._device, dtype=self._dtype)
        return rows[0], rows[1], torch.rand(requests, self._codebooks, device=self._device)

    def __call__(
        self, hidden: torch.Tensor, code0: torch.Tensor, uniforms: torch.Tensor
    ) -> torch.Tensor:
        """[R, Q - 1] int64 codes."""
        how = self._settings
        draws = same_draws(uniforms, self._sampled, how.temperature, how.top_k, how.top_p)
        codes: torch.Tensor = self._predictor(hidden, code0, draws.choose)
        return codes


def measure(checkpoint: Path, device: torch.device, tiny: bool) -> Iterator[PredictorRow]:
    """Every number of requests, greedy and sampled."""
    config = load_config(checkpoint)
    for sampled in (False, True):
        complete = FrameCompletion(config, device, sampled)
        graphs = ShapeGraphs(complete, device)
        for batch in TINY_BATCHES if tiny else BATCHES:
            yield PredictorRow(
                sampled=sampled,
                batch=batch,
                audio_s=batch * FRAME_PERIOD_S,
                step=compared(complete, graphs, complete.inputs(batch), device),
            )
