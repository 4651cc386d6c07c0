"""What the request builder gives the talker.

Letters: P tokens of the user's turns, M of them of media.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions


@dataclass(frozen=True, slots=True)
class Qwen3OmniTalkerInput:
    """What the talker knows before the thinker answers."""

    user: NDArray[np.int32]
    """[P]: the tokens of the user's turns, in order."""
    media: NDArray[np.int32]
    """[M]: where in `user` sounds, pictures and videos are, ascending. Their rows come from the
    thinker: its hidden states behind `Qwen3OmniTalkerConfig.accept_layer` layers."""
    sources: NDArray[np.int32]
    """[M]: where these rows are in the thinker's prompt, ascending."""
    positions: NDArray[np.float32]
    """[3, P + 9]: rotary positions of the user's turns and of the answer's beginning."""
    role: tuple[int, int, int]
    """The tokens that begin the answer: `<|im_start|>`, assistant, line feed."""
    speaker: int
    """The voice's code."""
    max_frames: int | None
    """None: the checkpoint's default."""
    sampling: SamplingOptions
