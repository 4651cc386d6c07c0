"""A function of tensors as CUDA graphs, one for each combination of input shapes.

A step of many small kernels takes as long as Python needs to launch them; a graph launches all at
once. For that the function has to launch the same kernels on the same memory whatever the values
are: it reads nothing on the host, and what it keeps between calls it changes in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

WARM_UPS = 3
"""Runs before a recording: libraries choose kernels and take their workspaces in the first ones."""

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class _Recorded:
    inputs: tuple[torch.Tensor, ...]
    output: torch.Tensor
    replay: Callable[[], None]


class ShapeGraphs:
    """Replays `function` from static inputs and into a static output.

    On another device than CUDA a replay calls the function, on the same static tensors.

    Args:
        function: one or more tensors on `device` -> a tensor there.
        device: where the static tensors lie.
    """

    def __init__(self, function: Callable[..., torch.Tensor], device: torch.device) -> None:
        self._function, self._device = function, device
        self._recorded: dict[Shapes, _Recorded] = {}
        # Graphs that run one at a time may share scratch memory, among which may be an output of
        # another one.
        self._pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None

    @torch.inference_mode()
    def capture(self, *example: torch.Tensor) -> None:
        """Record the function for these shapes and dtypes; shapes that are recorded stay so.

        The function runs a few times on copies of the example: what it changes in place is spoiled.

        Raises:
            RuntimeError: the function does what a graph cannot hold, such as reading a value.
        """
        shapes = _shapes(example)
        if shapes in self._recorded:
            return
        inputs = tuple(tensor.to(self._device, copy=True) for tensor in example)
        record = self._on_cuda if self._device.type == "cuda" else self._elsewhere
        self._recorded[shapes] = record(inputs)

    def holds(self, *inputs: torch.Tensor) -> bool:
        """Whether the shapes of these inputs were captured."""
        return _shapes(inputs) in self._recorded

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
        recorded = self._recorded.get(_shapes(inputs))
        if recorded is None:
            known = ", ".join(map(str, self._recorded)) or "none"
            raise ValueError(f"no graph of shapes {_shapes(inputs)}; captured: {known}")
        for static, given in zip(recorded.inputs, inputs, strict=True):
            static.copy_(given)
        recorded.replay()
        return recorded.output

    def _on_cuda(self, inputs: tuple[torch.Tensor, ...]) -> _Recorded:
        current = torch.cuda.current_stream(self._device)
        aside = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        aside.wait_stream(current)
        with torch.cuda.stream(aside):
            for _ in range(WARM_UPS):
                self._function(*inputs)
        current.wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        # Another thread of this process may allocate memory meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            output = self._function(*inputs)
        return _Recorded(inputs, output, graph.replay)

    def _elsewhere(self, inputs: tuple[torch.Tensor, ...]) -> _Recorded:
        output = self._function(*inputs).clone()

        def replay() -> None:
            output.copy_(self._function(*inputs))

        return _Recorded(inputs, output, replay)


def _shapes(tensors: tuple[torch.Tensor, ...]) -> Shapes:
    return tuple(tuple(tensor.shape) for tensor in tensors)
