"""Stands in for a CUDA graph on a CPU: operators that were called once are called again, on the
very same tensors, without the Python between them.

So whatever Python decided, read or made of values while it was recorded is the same in every
replay, as in a graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cantata.stages.common.graphs import ShapeGraphs


class RecordedOperators(TorchDispatchMode):  # type: ignore[misc,unused-ignore]
    """Remembers what is called inside."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._calls: list[tuple[Any, Any, Any, Any]] = []

    def __len__(self) -> int:
        return len(self._calls)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self._calls.append((func, args, kwargs or {}, made))
        return made

    def replay(self) -> None:
        """Call the operators again; what they make goes where it went before."""
        for func, args, kwargs, before in self._calls:
            for old, new in zip(_tensors(before), _tensors(func(*args, **kwargs)), strict=True):
                if old.data_ptr() != new.data_ptr():  # else a view, or changed in place
                    old.copy_(new)


def _tensors(made: Any) -> list[torch.Tensor]:
    if isinstance(made, torch.Tensor):
        return [made]
    if isinstance(made, list | tuple):
        return [tensor for one in made for tensor in _tensors(one)]
    return []


@contextmanager
def replayed_operators() -> Iterator[list[RecordedOperators]]:
    """What `ShapeGraphs` captures inside is replayed so; yields all recordings."""
    record, made = ShapeGraphs._record_uncaptured, list[RecordedOperators]()

    def recording(graphs: Any, inputs: tuple[torch.Tensor, ...]) -> Any:
        called = record(graphs, inputs)
        operators = RecordedOperators()
        with operators:
            output = graphs._function(*inputs)
        made.append(operators)
        return replace(called, output=output, replay=operators.replay)

    with patch.object(ShapeGraphs, "_record_uncaptured", recording):
        yield made
