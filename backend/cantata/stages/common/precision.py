"""How exactly CUDA multiplies float32."""

from __future__ import annotations

import torch


def allow_tf32(allowed: bool) -> None:
    """Let float32 products and convolutions of this process round their inputs to TF32 on CUDA.

    WHY both are set: by torch's defaults convolutions round and products do not.
    """
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed
