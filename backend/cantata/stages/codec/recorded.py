"""A decoder's steps as CUDA graphs, recorded while the stage loads.

Rows and frames of a batch decide which graph it takes. The plan makes chunks of a power of two of
frames; rows are padded with a spare slot, which is no stream's.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from cantata.config import CodecDeployment
from cantata.contract.model.codec import BlockDecoder, StreamingDecoder
from cantata.stages.codec.decoding import FrameByFrame
from cantata.stages.common.row_graphs import RowGraphs

SPARE_SLOTS = 1
"""One is enough: it may be in several rows, and what it holds means nothing."""


def can_record(decoder: StreamingDecoder | BlockDecoder, deployment: CodecDeployment) -> bool:
    """Whether a decoder's steps become CUDA graphs. In windows, positions are read on the host."""
    wanted = deployment.on_gpu and deployment.cuda_graphs and deployment.window is None
    return wanted and isinstance(decoder, StreamingDecoder) and decoder.recordable


def spare_slots(decoder: StreamingDecoder | BlockDecoder, deployment: CodecDeployment) -> int:
    """How many slots of state there are beside the deployment's."""
    return SPARE_SLOTS if can_record(decoder, deployment) else 0


def recorded(
    decoder: StreamingDecoder, state: Any, deployment: CodecDeployment, device: torch.device
) -> FrameByFrame:
    """Record the steps that the plan may ask for; nothing but the spare slot is decoded.

    Args:
        state: the decoder's, of `SPARE_SLOTS` more slots than the deployment has.
        device: where the decoder runs.

    Returns:
        What decodes with this state alone.
    """
    graphs = RowGraphs(partial(decoder.decode, state), device, "the decoder's step")
    frames = 1
    while frames <= min(deployment.max_chunk_frames, deployment.max_batch_frames):
        spare = torch.tensor([deployment.slots]), _made_up(decoder, frames)
        rows = min(deployment.slots, deployment.max_batch_frames // frames)
        if not graphs.capture(spare, rows):
            break
        frames *= 2

    def decode(_: Any, slots: torch.Tensor, frames: torch.Tensor) -> torch.Tensor:
        return graphs(slots, frames)

    return FrameByFrame(decoder, decode)


def _made_up(decoder: StreamingDecoder, frames: int) -> torch.Tensor:
    """Frames that any decoder takes: [1, T, Q] int64 codes or [1, T, E] float32 latents."""
    if decoder.latent_size:
        return torch.zeros(1, frames, decoder.latent_size)
    return torch.zeros(1, frames, decoder.num_codebooks, dtype=torch.int64)
