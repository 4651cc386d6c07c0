"""Checks that products outside vLLM's layers are exact per row, for a model's `check_numerics`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import torch

from cantata.contract.model.numerics import NumericsReport, differing_counts
from cantata.contract.model.row_products import RowProduct

COUNTS = (*range(1, 18), 24, 31, 33, 64)
"""Numbers of rows at which kernels change."""
AMONG = 64


@dataclass(frozen=True, slots=True)
class Products:
    """Products that are laid out alike."""

    shapes: Sequence[tuple[int, int]]
    """(inputs, outputs)"""
    layouts: tuple[int, ...] = ()
    """Of `RowProduct`."""
    counts: tuple[int, ...] = COUNTS
    """Numbers of rows."""


def check_products(*groups: Products) -> NumericsReport:
    """Check products with random float32 weights."""
    differing = [line for group in groups for line in _differences(group)]
    if differing:
        return NumericsReport(exact=False, found="; ".join(differing))
    return NumericsReport(exact=True, found="oneDNN in float32, for any number of rows")


def _differences(group: Products) -> Iterator[str]:
    for inputs, outputs in group.shapes:
        if differing := _differing(inputs, outputs, group.layouts, group.counts):
            yield f"{inputs} x {outputs} with {', '.join(map(str, differing))} rows"


@cache  # models have shapes in common, and a large one takes seconds
def _differing(
    inputs: int, outputs: int, layouts: tuple[int, ...], counts: tuple[int, ...]
) -> list[int]:
    generator = torch.Generator().manual_seed(inputs + outputs)
    # Rows that begin one number later each: what differs is the order of sums, whatever the
    # numbers, and those of a published model take seconds to draw.
    numbers = torch.randn(inputs + outputs, generator=generator)
    weight = numbers.as_strided((outputs, inputs), (1, 1)).contiguous()
    row = torch.randn(inputs, generator=generator)
    return differing_counts(RowProduct(weight, *layouts), row, counts, AMONG)
