"""How much memory a stage is going to hold on its device, found before it holds any.

Models are built on `meta`, a device of torch whose tensors have shapes and no memory.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch

T = TypeVar("T")

META = torch.device("meta")
WEIGHTS, STATE, GRAPHS = "weights", "states", "graphs"
GRAPH_BYTES = 16 << 20
"""Taken for one CUDA graph, with its share of their common pool. An estimate: what a graph takes
cannot be known before it is recorded. vLLM's own take 10 to 20 MiB each for models of this size."""


def count_made(make: Callable[[], T]) -> tuple[T, int]:
    """Make something whose tensors lie on `meta`.

    Returns:
        What was made, and how many bytes it would take elsewhere.
    """
    before = _list_on_meta()
    known = {tensor.untyped_storage()._cdata for tensor in before}
    made = make()
    sizes = {
        tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes()
        for tensor in _list_on_meta()
    }
    return made, sum(size for storage, size in sizes.items() if storage not in known)


def count_row_graphs(max_rows: int) -> int:
    """Graphs of 1, 2, 4, ... rows, as `graphs.RowGraphs` records them."""
    return (max_rows - 1).bit_length() + 1


def count_files(checkpoint: Path) -> Mapping[str, int]:
    """The weights of a stage that cannot be built on `meta`: all files of the checkpoint."""
    if checkpoint.is_file():
        return {WEIGHTS: checkpoint.stat().st_size}
    return {WEIGHTS: sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file())}


def _list_on_meta() -> list[torch.Tensor]:
    # WHY types: some objects warn when they are asked for their class.
    tensors = [found for found in gc.get_objects() if issubclass(type(found), torch.Tensor)]
    return [tensor for tensor in tensors if tensor.device == META]
