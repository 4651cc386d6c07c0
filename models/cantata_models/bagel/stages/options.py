"""Which options of a deployment the stages with the language model take."""

from __future__ import annotations

import torch

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.denoiser import DenoiserOptions

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
"""The model was trained in the latter."""


def served_dtype(options: DenoiserOptions) -> torch.dtype:
    """Of the weights.

    Raises:
        ConfigError: it, or another option, is not served.
    """
    if options.dtype not in DTYPES:
        raise ConfigError(f"dtype {options.dtype} is not served; valid: {', '.join(DTYPES)}")
    given = {"cache": options.skipping, "parallel": options.ranks, "hooked": options.hooked}
    if unserved := [name for name, value in given.items() if value is not None]:
        raise ConfigError(f"{', '.join(unserved)}: not served by this model; valid: none of them")
    return DTYPES[options.dtype]
