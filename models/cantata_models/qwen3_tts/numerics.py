"""Checks that the matrix products are exact per row on this machine, for `cantata doctor`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from cantata.contract.model.numerics import NumericsReport, differing_counts
from cantata.contract.model.row_products import RowProduct
from cantata_layers.linear import TYPICAL_ROWS

TALKER_SHAPES = ((2048, 1024), (1024, 4096), (3072, 1024), (1024, 6144))
"""(inputs, outputs) in the talker of the published 0.6B model."""
FRAME_SHAPES = ((1536, 1024), (1024, 512), (512, 1024), (1024, 4096), (4096, 1024))
"""The codec's products with one row per position of a frame."""
WAVE_SHAPES = ((5376, 768), (2688, 384), (672, 96), (672, 1))
"""The products of the codec's last stages, with up to 1,920 rows per frame."""
_COUNTS = (*range(1, 18), 24, 31, 33, 64)
_MANY = (320, 1920)
_AMONG = 64


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    differing = list(_differences())
    if differing:
        return NumericsReport(exact=False, found="; ".join(differing))
    return NumericsReport(exact=True, found="oneDNN in float32, for any number of rows")


def _differences() -> Iterator[str]:
    for shape in TALKER_SHAPES + FRAME_SHAPES + WAVE_SHAPES:
        inputs, outputs = shape
        generator = torch.Generator().manual_seed(inputs + outputs)
        weight = torch.randn(outputs, inputs, generator=generator)
        row = torch.randn(inputs, generator=generator)
        layouts = () if shape in TALKER_SHAPES else (TYPICAL_ROWS,)
        counts = (*_COUNTS, *(_MANY if shape in WAVE_SHAPES[-2:] else ()))
        if differing := differing_counts(RowProduct(weight, *layouts), row, counts, _AMONG):
            yield f"{inputs} x {outputs} with {', '.join(map(str, differing))} rows"
