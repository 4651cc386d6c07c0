"""Checks that products outside vLLM's layers are exact per row, for a model's `check_numerics`.

Quick to import: a plug-in describes the products to check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from cantata.contract.model.numerics import NumericsReport, find_differing_counts

TYPICAL_ROWS = 64
"""Rows for which a codec's products are laid out, one for each position; any number works."""
COUNTS = (*range(1, 18), 24, 31, 33, 64)
"""Numbers of rows at which kernels change."""
AMONG = 64


@dataclass(frozen=True, slots=True)
class Products:
    """Products that are laid out alike."""

    shapes: Sequence[tuple[int, int]]
    """(inputs, outputs)"""
    layouts: tuple[int, ...] = ()
    """The rows for which `RowProduct` lays out the weights, if not its usual number."""
    counts: tuple[int, ...] = COUNTS
    """Numbers of rows to multiply."""


def check_products(*groups: Products) -> NumericsReport:
    """Check products with random float32 weights."""
    differing = [line for group in groups for line in _iterate_differences(group)]
    if differing:
        return NumericsReport(exact=False, found="; ".join(differing))
    return NumericsReport(exact=True, found="oneDNN in float32, for any number of rows")


def _iterate_differences(group: Products) -> Iterator[str]:
    for inputs, outputs in group.shapes:
        if differing := _list_differing(inputs, outputs, group.layouts, group.counts):
            yield f"{inputs} x {outputs} with {', '.join(map(str, differing))} rows"


@cache  # models have shapes in common, and a large one takes seconds
def _list_differing(
    inputs: int, outputs: int, layouts: tuple[int, ...], counts: tuple[int, ...]
) -> list[int]:
    # Plug-ins say what is to be checked, and every command imports those.
    import torch

    from cantata.contract.model.row_products import RowProduct

    generator = torch.Generator().manual_seed(inputs + outputs)
    # Rows that begin one number later each: what differs is the order of sums, whatever the
    # numbers, and those of a published model take seconds to draw.
    numbers = torch.randn(inputs + outputs, generator=generator)
    weight = numbers.as_strided((outputs, inputs), (1, 1)).contiguous()
    row = torch.randn(inputs, generator=generator)
    return find_differing_counts(RowProduct(weight, *layouts), row, counts, AMONG)
