"""Products of a few float32 rows on a CPU, whose weights are read in bfloat16.

A few rows take as long as reading their weights, and most checkpoints' weights are exact in
bfloat16: half as many bytes. The sums are those of `RowProduct`, in the same order, so a row has
the same bits whichever of the two multiplies it: prompts and answers, alone and in company. That is
checked with each weight before its first use. Where it does not hold, or weights are not exact,
`RowProduct` multiplies all rows.

Numba compiles the loops for the CPU, once; vLLM needs it, too. torch has no product that reads such
weights and adds in this order on a CPU without instructions for bfloat16.

Letters: R rows, I inputs, O outputs, T tiles of 64 outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.model.row_products import RowProduct

MAX_ROWS = 3
"""More rows take less time in `RowProduct`, which reads a weight once for all of them."""
RUN = 1024
"""Inputs that oneDNN adds in order before it begins another sum; it then adds these sums."""
_TILE = 64
"""Outputs whose sums stay in the first cache while the inputs are added."""
_STEP = 4
"""Inputs that are added to a sum while it is in a register."""
_LOW_HALF, _HIGH_HALF = np.uint32(16), np.uint32(0xFFFF0000)

_Kernel: TypeAlias = Callable[
    [NDArray[np.float32], NDArray[np.uint32], int, NDArray[np.float32]], None
]


class FewRows:
    """[R, I] @ weight.T + bias -> [R, O], for few rows.

    Args:
        weight: [O, I] that `can_pack`; copied.
        kernel: of `compile_kernel`.
        run: inputs that are added in order before another sum begins.
    """

    def __init__(self, weight: torch.Tensor, kernel: _Kernel, run: int) -> None:
        outputs, inputs = weight.shape
        pairs = weight.detach().bfloat16().view(torch.int32)
        tiles = pairs.view(outputs // _TILE, _TILE, inputs // 2).transpose(1, 2).contiguous()
        self._tiles: NDArray[np.uint32] = tiles.numpy().view(np.uint32)
        self._outputs, self._kernel, self._run = outputs, kernel, run

    def __call__(self, rows: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        out = rows.new_empty(len(rows), self._outputs)
        self._kernel(rows.contiguous().numpy(), self._tiles, self._run, out.numpy())
        return out if bias is None else out.add_(bias)


class FewOrManyRows:
    """[R, I] @ weight.T + bias -> [R, O], exact per row, without gradients. `weight`: [O, I]
    float32 on the CPU; copied."""

    def __init__(self, weight: torch.Tensor) -> None:
        self._many = RowProduct(weight)
        self._few = _find_equal(weight, self._many)

    @property
    def reads_halves(self) -> bool:
        """Whether a few rows read bfloat16."""
        return self._few is not None

    def __call__(self, rows: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        if self._few is None or len(rows) > MAX_ROWS:
            return self._many(rows, bias)
        return self._few(rows, bias)


def can_pack(weight: torch.Tensor) -> bool:
    """Whether the weights fill tiles, and lose nothing in bfloat16."""
    outputs, inputs = weight.shape
    fits = outputs % _TILE == 0 and inputs % _STEP == 0
    return fits and torch.equal(weight.bfloat16().float(), weight)


def _find_equal(weight: torch.Tensor, many: RowProduct) -> FewRows | None:
    """The product of few rows, if it has the bits of the product of many.

    WHY by trial: oneDNN does not tell in which order it adds, and the order differs with the CPU.
    """
    kernel = compile_kernel() if can_pack(weight) else None
    if kernel is None:
        return None
    few = FewRows(weight, kernel, RUN)
    draw = torch.Generator().manual_seed(0)
    rows = torch.randn(MAX_ROWS, weight.shape[1], generator=draw)
    bias = torch.randn(weight.shape[0], generator=draw)
    equal = all(torch.equal(few(rows, one), many(rows, one)) for one in (None, bias))
    return few if equal else None


@cache
def compile_kernel() -> _Kernel | None:
    """Compile `multiply_few`, or find what an earlier process compiled for this CPU.

    Returns:
        None without Numba.
    """
    try:
        import numba
        from llvmlite.binding import ffi
    except ImportError:
        return None
    # WHY: an engine of vLLM looks into all objects of all modules that have a `__dict__`. This one
    # makes a function of any name, and would end the next engine in this process.
    ffi.lib._fntab.setdefault("__dict__", {})
    # Multiplying and adding in one instruction, as oneDNN does; no other freedom.
    options = {"nogil": True, "fastmath": {"contract"}}
    kernel: _Kernel
    try:
        kernel = numba.njit(cache=True, **options)(multiply_few)
    except RuntimeError:  # no folder to keep it in can be written
        kernel = numba.njit(**options)(multiply_few)
    return kernel


def multiply_few(
    rows: NDArray[np.float32], tiles: NDArray[np.uint32], run: int, out: NDArray[np.float32]
) -> None:
    """Add products in the order of the inputs. A vector holds sums of several outputs.

    Args:
        rows: [R, I].
        tiles: [T, I / 2, 64]: the weights of two inputs in each, the first's in the lower half.
        run: inputs of one sum.
        out: [R, 64 T], written.
    """
    sums = np.empty(_TILE, np.float32)
    for tile in range(tiles.shape[0]):
        for row in range(rows.shape[0]):
            target = out[row, tile * _TILE : (tile + 1) * _TILE]
            for start in range(0, rows.shape[1], run):
                sums[:] = np.float32(0)
                for i in range(start, min(start + run, rows.shape[1]), _STEP):
                    x0, x1 = rows[row, i], rows[row, i + 1]
                    x2, x3 = rows[row, i + 2], rows[row, i + 3]
                    first, second = tiles[tile, i // 2], tiles[tile, i // 2 + 1]
                    for j in range(_TILE):
                        total, a, b = sums[j], first[j], second[j]
                        total += x0 * np.uint32(a << _LOW_HALF).view(np.float32)
                        total += x1 * np.uint32(a & _HIGH_HALF).view(np.float32)
                        total += x2 * np.uint32(b << _LOW_HALF).view(np.float32)
                        total += x3 * np.uint32(b & _HIGH_HALF).view(np.float32)
                        sums[j] = total
                if start:
                    for j in range(_TILE):
                        target[j] += sums[j]
                else:
                    target[:] = sums
