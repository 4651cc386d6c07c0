"""CUDA graphs of a function, one for each combination of input shapes, or for 1, 2, 4, ... rows.

A step of many small kernels takes as long as Python needs to launch them; a graph launches all at
once. For that the function has to launch the same kernels on the same memory whatever the values
are: it reads nothing on the host, and what it keeps between calls it changes in place.

Letters: R rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

WARM_UPS = 3
"""Runs before a recording: libraries choose kernels and take their workspaces in the first ones."""
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""What recorded attention may use. cuDNN's plans each shape anew, which others measured at a third
of a second (SGLang-Omni's issue 1947)."""

Shapes = tuple[tuple[int, ...], ...]
Pool: TypeAlias = "torch.cuda._POOL_HANDLE"
"""How torch names memory of graphs."""


@dataclass(frozen=True, slots=True)
class _Recorded:
    inputs: tuple[torch.Tensor, ...]
    output: torch.Tensor
    replay: Callable[[], None]


def make_pool(device: torch.device) -> Pool | None:
    """Scratch memory for graphs that run one at a time, among which may be an output of another
    one. None: there are no graphs."""
    return torch.cuda.graph_pool_handle() if device.type == "cuda" else None


class ShapeGraphs:
    """Replays `function` from static inputs and into a static output.

    On another device than CUDA a replay calls the function, on the same static tensors.

    Args:
        function: one or more tensors on `device` -> a tensor there.
        device: where the static tensors lie.
        pool: of `make_pool`, if others use it too. None: one of its own.
    """

    def __init__(
        self,
        function: Callable[..., torch.Tensor],
        device: torch.device,
        pool: Pool | None = None,
    ) -> None:
        self._function, self._device = function, device
        self._recorded: dict[Shapes, _Recorded] = {}
        self._pool = make_pool(device) if pool is None else pool

    @torch.inference_mode()
    def capture(self, *example: torch.Tensor) -> None:
        """Record the function for these shapes and dtypes; shapes that are recorded stay so.

        The function runs a few times on copies of the example: what it changes in place is spoiled.

        Raises:
            RuntimeError: the function does what a graph cannot hold, such as reading a value.
        """
        shapes = _list_shapes(example)
        if shapes in self._recorded:
            return
        inputs = tuple(tensor.to(self._device, copy=True) for tensor in example)
        record = self._on_cuda if self._device.type == "cuda" else self._record_uncaptured
        self._recorded[shapes] = record(inputs)

    def holds(self, *inputs: torch.Tensor) -> bool:
        """Whether the shapes of these inputs were captured."""
        return _list_shapes(inputs) in self._recorded

    @torch.inference_mode()
    def __call__(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Run the function.

        Args:
            inputs: on any device, of shapes that were captured.

        Returns:
            The static output: the next call, of any shapes, may write over it.

        Raises:
            ValueError: these shapes were not captured.
        """
        recorded = self._recorded.get(_list_shapes(inputs))
        if recorded is None:
            known = ", ".join(map(str, self._recorded)) or "none"
            raise ValueError(f"no graph of shapes {_list_shapes(inputs)}; captured: {known}")
        for static, given in zip(recorded.inputs, inputs, strict=True):
            static.copy_(given)
        recorded.replay()
        return recorded.output

    def _on_cuda(self, inputs: tuple[torch.Tensor, ...]) -> _Recorded:
        current = torch.cuda.current_stream(self._device)
        aside = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        aside.wait_stream(current)
        with torch.cuda.stream(aside), sdpa_kernel(ATTENTION):
            for _ in range(WARM_UPS):
                self._function(*inputs)
        current.wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        # Another thread of this process may allocate memory meanwhile.
        recording = torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local")
        with recording, sdpa_kernel(ATTENTION):
            output = self._function(*inputs)
        return _Recorded(inputs, output, graph.replay)

    def _record_uncaptured(self, inputs: tuple[torch.Tensor, ...]) -> _Recorded:
        output = self._function(*inputs).clone()

        def replay() -> None:
            output.copy_(self._function(*inputs))

        return _Recorded(inputs, output, replay)


def _list_shapes(tensors: tuple[torch.Tensor, ...]) -> Shapes:
    return tuple(tuple(tensor.shape) for tensor in tensors)


logger = logging.getLogger(__name__)

RowShapes = tuple[tuple[int, ...], ...]


class RowGraphs:
    """Calls a function through graphs of its shapes, and plainly where none was captured.

    Args:
        function: one or more tensors [R, ...] -> [R, ...]. A row's result depends on that row, and
            whatever else it changes is that row's too.
        device: where it runs; `ShapeGraphs` says what happens on another one than CUDA.
        what: the function's name in the log.
        pool: as of `ShapeGraphs`. What a call returns lies elsewhere.
    """

    def __init__(
        self,
        function: Callable[..., torch.Tensor],
        device: torch.device,
        what: str,
        pool: Pool | None = None,
    ) -> None:
        self._function, self._what = function, what
        self._graphs = ShapeGraphs(function, device, pool)
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
        self._spares[_list_row_shapes(spare)] = tuple(spare)
        rows = 1
        while rows < 2 * max_rows:
            try:
                self._graphs.capture(*(_repeat(one, rows) for one in spare))
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
        return self._pad_inputs(inputs) is not None

    def __call__(self, *inputs: torch.Tensor) -> torch.Tensor:
        """[R, ...] each -> [R, ...], a tensor of its own."""
        padded = self._pad_inputs(inputs)
        if padded is None:
            return self._function(*inputs)
        return self._graphs(*padded)[: len(inputs[0])].clone()

    def _pad_inputs(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor] | None:
        """Fill up with spare rows to a captured shape; None: there is none."""
        spare, count = self._spares.get(_list_row_shapes(inputs)), len(inputs[0])
        if spare is None:
            return None
        missing = (1 << (count - 1).bit_length()) - count
        if missing:
            pairs = zip(inputs, spare, strict=True)
            inputs = [torch.cat((given, _repeat(one, missing))) for given, one in pairs]
        return inputs if self._graphs.holds(*inputs) else None


def _list_row_shapes(tensors: Sequence[torch.Tensor]) -> RowShapes:
    return tuple(tuple(tensor.shape[1:]) for tensor in tensors)


def _repeat(row: torch.Tensor, count: int) -> torch.Tensor:
    return row.expand(count, *row.shape[1:])
