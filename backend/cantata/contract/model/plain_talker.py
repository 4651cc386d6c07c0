"""A talker without vLLM's Python: torch, and the kernels that the engine hands to it.

A model may offer one beside its served talker (`StageSpec.plain`). `cantata say` runs it instead of
a server, and a stage with `engine: graphs` serves it. In float32 on a CPU it gives the same bits as
the served talker, because it computes with the same kernels: vLLM's compiled ones, and the model's
own products.

Letters: N positions, D hidden size, H query heads, K key-value heads, E head size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from cantata.contract.model.talker import Talker


class AttentionMemory(Protocol):
    """Keys and values of many requests, for all layers.

    Before each forward pass the engine tells it which requests' positions the rows are.
    """

    def attend(
        self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """Remember the new positions' keys and values, and let each position attend to those of its
        request up to itself.

        Args:
            layer: index.
            queries: [N, H, E].
            keys: [N, K, E], and so are `values`.

        Returns:
            [N, H * E].
        """
        ...


class BackboneKernels(Protocol):
    """The operations of a decoder that are no products."""

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        """[..., D] -> [..., D], a new tensor."""
        ...

    def add_rms_norm(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> torch.Tensor:
        """[N, D] each: `residual` becomes their sum, in place, and its norm is returned. `x` may be
        written over."""
        ...

    def look_up_rotary(self, table: torch.Tensor, positions: torch.Tensor) -> Any:
        """What `rotate` needs, once for all layers of a forward pass.

        Args:
            table: [positions, E] float32: cosines, then sines.
            positions: [N] int64.
        """
        ...

    def rotate(
        self, queries: torch.Tensor, keys: torch.Tensor, head_size: int, rotary: Any
    ) -> None:
        """Rotate [N, H * E] queries and [N, K * E] keys by their positions, in place.

        Args:
            queries: in NeoX's layout, contiguous, as `keys`.
            keys: of the same positions.
            head_size: E.
            rotary: from `look_up_rotary`.
        """
        ...

    def attention(
        self,
        layers: int,
        heads: int,
        kv_heads: int,
        head_size: int,
        *,
        requests: int,
        positions: int,
    ) -> AttentionMemory:
        """Memory on torch's default device for this many requests of at most so many positions."""
        ...


class _NoDraws(TorchFunctionMode):
    """Fills new modules instead of drawing their random numbers; 900 million take four seconds.

    WHY not what lies in the memory: `trunc_normal_` draws until all numbers are within its bounds.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        named = kwargs or {}
        if func not in _FIRST_BOUNDS:
            return func(*args, **named)
        tensor, bound = args[0] if args else named["tensor"], _FIRST_BOUNDS[func]
        value = args[1] if len(args) > 1 and bound else named.get(bound, 0.0)
        with torch.no_grad():
            return tensor.fill_(value)


_FIRST_BOUNDS: dict[Callable[..., Any], str | None] = {
    torch.Tensor.uniform_: "from",
    torch.Tensor.normal_: "mean",
    nn.init.uniform_: "a",
    nn.init.normal_: "mean",
    nn.init.kaiming_uniform_: None,
}
"""Of each function that draws, the argument whose value may be drawn; None: zero may be."""


@dataclass(frozen=True, slots=True)
class PlainTalkerOptions:
    """How a plain talker is loaded."""

    kernels: BackboneKernels
    device: torch.device
    dtype: torch.dtype
    """Of its backbone's weights and rows."""
    max_model_len: int
    """Positions that the deployment gives to a request."""

    @contextmanager
    def building(self) -> Iterator[None]:
        """Inside, modules are made on the device, and in the dtype unless they name another. Their
        weights are anything until they are loaded."""
        usual = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)
        try:
            with _NoDraws(), self.device:
                yield
        finally:
            torch.set_default_dtype(usual)


class PlainTalker(Talker):
    """A talker that does without the class methods for vLLM; otherwise the same.

    All of its functions over rows launch the same kernels whatever the values are, and read none on
    the host, so an engine may record them with what is around them. `make_frames` keeps nothing of
    the last `compute_logits`.
    """

    min_rows = 1
    """All of its products are exact for any number of rows, on a CPU in float32."""
    recordable = True

    hidden_size: int
    """D, the width of hidden states."""
    max_positions: int
    """Positions that a request may have: the deployment's, or the checkpoint's if it has fewer."""

    def attention(self, requests: int, positions: int) -> AttentionMemory:
        """Memory on torch's default device for this many requests of at most so many positions."""
        raise NotImplementedError

    def forward_rows(
        self, rows: torch.Tensor, positions: torch.Tensor, memory: AttentionMemory
    ) -> torch.Tensor:
        """[N, D] input rows at [N] int64 positions of their requests -> [N, D]."""
        raise NotImplementedError

    def compute_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V] scores of code 0."""
        raise NotImplementedError
