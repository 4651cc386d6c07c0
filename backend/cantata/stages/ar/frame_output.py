"""How a whole frame leaves vLLM: in the fields of its log-probabilities.

vLLM copies these to the host together with the sampled tokens and slices them by request, under
either runner, so a frame always stays with its token. Codes remain integers throughout, in the
field for token ids; latents take the field for float32 values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from vllm.v1.outputs import LogprobsLists, LogprobsTensors


def pack_frames(frames: torch.Tensor) -> LogprobsTensors:
    """[R, Q] int64 codes or [R, E] float32 latents as the log-probability tensors of one token per
    request."""
    are_latents = frames.is_floating_point()
    nothing = frames[:, :0]
    return LogprobsTensors(
        logprob_token_ids=(nothing if are_latents else frames).to(torch.int32),
        logprobs=(frames if are_latents else nothing).to(torch.float32),
        selected_token_ranks=frames.new_zeros(frames.shape[0], dtype=torch.int32),
    )


def unpack_frame(logprobs: LogprobsLists) -> NDArray[Any]:
    """One request's slice of a step's output -> [1, Q] int32 codes or [1, E] float32 latents."""
    are_latents = logprobs.logprobs.shape[1] > 0
    return np.array(logprobs.logprobs if are_latents else logprobs.logprob_token_ids)
