"""Which numbers networks compute with, and whether products are exact per row on this machine, for
`cantata doctor`."""

from __future__ import annotations

import torch

from cantata.contract.model.numerics import NumericsReport
from cantata_layers.numerics import Products, check_products


def dtype_on(device: torch.device) -> torch.dtype:
    """Float32 on a CPU, bfloat16 elsewhere."""
    return torch.float32 if device.type == "cpu" else torch.bfloat16


SHAPES = ((64, 3072), (3584, 3072), (3072, 3072), (3072, 12288), (12288, 3072), (3072, 64))
"""(inputs, outputs) in the published denoiser."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    return check_products(Products(SHAPES))
