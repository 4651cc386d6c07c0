"""A function of rows as graphs for 1, 2, 4, ... rows; other numbers of rows are padded.

Letters: R rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import torch

from cantata.stages.common.graphs import ShapeGraphs

logger = logging.getLogger(__name__)

RowShapes = tuple[tuple[int, ...], ...]


class RowGraphs:
    """Calls a function through graphs of its shapes, and plainly where none was captured.

    Args:
        function: one or more tensors [R, ...] -> [R, ...]. A row's result depends on that row, and
            whatever else it changes is that row's too.
        device: where it runs; `ShapeGraphs` says what happens on another one than CUDA.
        what: the function's name in the log.
    """

    def __init__(
        self, function: Callable[..., torch.Tensor], device: torch.device, what: str
    ) -> None:
        self._function, self._what = function, what
        self._graphs = ShapeGraphs(function, device)
        self._spares: dict[RowShapes, tuple[torch.Tensor, ...]] = {}

    def capture(self, spare: Sequence[torch.Tensor], max_rows: int) -> bool:
        """Capture the function for up to `max_rows` rows of one form.

        It is called with nothing but spare rows. What cannot be captured is logged and called
        plainly later.

        Args:
            spare: [1, ...] each: a row that belongs to nobody, on the devices of later inputs.
            max_rows: at least 1.

        Returns:
            Whether everything was captured.
        """
        self._spares[_row_shapes(spare)] = tuple(spare)
        rows = 1
        while rows < 2 * max_rows:
            try:
                self._graphs.capture(*(_repeated(one, rows) for one in spare))
            except RuntimeError as error:  # torch's only one: no memory, a value is read, ...
                reason = next(iter(str(error).splitlines()), type(error).__name__)
                logger.warning(
                    "%s: no CUDA graph of %d rows or more, so it runs without: %s",
                    *(self._what, rows, reason),
                )
                return False
            rows *= 2
        return True

    def holds(self, *inputs: torch.Tensor) -> bool:
        """Whether a call with these inputs is a replay."""
        return self._padded(inputs) is not None

    def __call__(self, *inputs: torch.Tensor) -> torch.Tensor:
        """[R, ...] each -> [R, ...], a tensor of its own."""
        padded = self._padded(inputs)
        if padded is None:
            return self._function(*inputs)
        return self._graphs(*padded)[: len(inputs[0])].clone()

    def _padded(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor] | None:
        """Fill up with spare rows to a captured shape; None: there is none."""
        spare, count = self._spares.get(_row_shapes(inputs)), len(inputs[0])
        if spare is None:
            return None
        missing = (1 << (count - 1).bit_length()) - count
        if missing:
            pairs = zip(inputs, spare, strict=True)
            inputs = [torch.cat((given, _repeated(one, missing))) for given, one in pairs]
        return inputs if self._graphs.holds(*inputs) else None


def _row_shapes(tensors: Sequence[torch.Tensor]) -> RowShapes:
    return tuple(tuple(tensor.shape[1:]) for tensor in tensors)


def _repeated(row: torch.Tensor, count: int) -> torch.Tensor:
    return row.expand(count, *row.shape[1:])
