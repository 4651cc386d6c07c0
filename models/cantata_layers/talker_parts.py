"""What talkers share: a request's limit of frames, a projection, frames with predicted codes.

Letters: N rows, R requests, D hidden size, Q codebooks.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.model.row_products import RowLinear
from cantata.contract.model.talker import FrameDraws, Talker
from cantata_layers.code_predictor import CodePredictor


def frame_limit(
    prompt_len: int,
    positions: int,
    wanted: int | None,
    most: int,
    *,
    least: int = 1,
    param: str = "input",
) -> int:
    """Return the request's own limit, or the model's as far as there is room.

    Args:
        positions: of a request of this deployment, its frames included.
        wanted: the request's own limit; whether there is room for it is checked with the prompt.
        most: the model's.
        least: frames that there must be room for.
        param: the request field that an error names.

    Raises:
        InvalidRequest: the prompt leaves no room for sound.
    """
    room = positions - prompt_len
    if room < least:
        raise InvalidRequest(
            f"the prompt has {prompt_len} positions; of the {positions} of this deployment none is "
            "left for sound",
            param,
        )
    return min(most, room) if wanted is None else wanted


class Projection(nn.Module):
    """Projects rows to a talker's width by `inner` values: [..., inputs] -> [..., outputs]."""

    def __init__(self, inputs: int, inner: int, outputs: int) -> None:
        super().__init__()
        self.linear_fc1 = RowLinear(inputs, inner)
        self.linear_fc2 = RowLinear(inner, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        projected: torch.Tensor = self.linear_fc2(functional.silu(self.linear_fc1(x)))
        return projected


class PredictedFrames(Talker):
    """A talker that embeds and makes frames with a code predictor."""

    recordable = True

    codec_embedding: nn.Embedding
    """Of codes 0."""
    code_predictor: CodePredictor

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, Q] -> [N, D]."""
        first = self.codec_embedding(frames[:, :1])
        return torch.cat((first, self.code_predictor.embed(frames[:, 1:])), dim=1).sum(dim=1)

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, D] and [R] -> [R, Q]."""
        others = self.code_predictor(hidden, self.codec_embedding(code0), draws.choose)
        return torch.cat((code0[:, None], others), dim=1)
