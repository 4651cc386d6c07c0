"""How a whole frame leaves vLLM: in the fields of its log-probabilities.

vLLM copies these to the host together with the sampled tokens and slices them by request, under
either runner, so a frame always stays with its token. They remain integers throughout.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from vllm.v1.outputs import LogprobsLists, LogprobsTensors


def frames_as_logprobs(frames: torch.Tensor) -> LogprobsTensors:
    """[R, Q] int64 frames as the log-probability tensors of one token per request."""
    return LogprobsTensors(
        logprob_token_ids=frames.to(torch.int32),
        logprobs=frames.new_zeros((frames.shape[0], 0), dtype=torch.float32),
        selected_token_ranks=frames.new_zeros(frames.shape[0], dtype=torch.int32),
    )


def codes_of_logprobs(logprobs: LogprobsLists) -> NDArray[np.int32]:
    """One request's slice of a step's output -> [1, Q] codes."""
    codes: NDArray[np.int32] = np.array(logprobs.logprob_token_ids, dtype=np.int32)
    return codes
