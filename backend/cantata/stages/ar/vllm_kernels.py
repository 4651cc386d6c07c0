"""vLLM's compiled CPU kernels without vLLM's Python: milliseconds to load instead of seconds.

The library registers its operators with torch by itself. The choice of build for this processor
and the operators' arguments follow vLLM (`vllm.platforms.cpu`,
`vllm.v1.attention.backends.cpu_attn`), so that the bits are those of the served model.
"""

from __future__ import annotations

import platform
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import torch

BLOCK_POSITIONS = 32
"""Positions per block of keys and values, as in the engine."""
_ISA = "vec"
"""The attention kernel that vLLM takes for float32 and blocks of this size on x86."""


def library() -> Path | None:
    """The build of vLLM's CPU kernels for this processor; None: there is none."""
    package = find_spec("vllm")
    if package is None or not package.submodule_search_locations:
        return None
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    name = "_C_AVX2"
    if torch.cpu._is_avx512_bf16_supported():
        name = "_C"
    elif torch.cpu._is_avx512_supported():
        name = "_C_AVX512"
    path = Path(package.submodule_search_locations[0]) / f"{name}.abi3.so"
    return path if path.exists() else None


@cache
def load_kernels() -> VllmKernels | None:
    """The kernels; None where the installed vLLM has none for this processor."""
    path = library()
    if path is None:
        return None
    torch.ops.load_library(path)  # type: ignore[no-untyped-call]
    missing = [name for name in _OPERATORS if not hasattr(torch.ops._C, name)]
    return None if missing else VllmKernels()


_OPERATORS = (
    "rms_norm",
    "fused_add_rms_norm",
    "rotary_embedding",
    "get_scheduler_metadata",
    "cpu_attn_reshape_and_cache",
    "cpu_attention_with_kv_cache",
)


class VllmKernels:
    """Implements `contract.model.plain_talker.BackboneKernels`."""

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        """[..., D] -> [..., D], a new tensor."""
        normed = torch.empty(x.shape, dtype=x.dtype)
        torch.ops._C.rms_norm(normed, x.contiguous(), weight, epsilon)
        return normed

    def add_rms_norm(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> torch.Tensor:
        """[N, D] each: `residual` becomes their sum, and its norm, which is returned, `x`."""
        torch.ops._C.fused_add_rms_norm(x, residual, weight, epsilon)
        return x

    def look_up_rotary(
        self, table: torch.Tensor, positions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Both as they are: the kernel reads the table."""
        return table, positions

    def rotate(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        head_size: int,
        rotary: tuple[torch.Tensor, torch.Tensor],
    ) -> None:
        """Rotate queries and keys by their positions, in place."""
        table, positions = rotary
        torch.ops._C.rotary_embedding(positions, queries, keys, head_size, table, True)

    def attention(
        self,
        layers: int,
        heads: int,
        kv_heads: int,
        head_size: int,
        *,
        requests: int,
        positions: int,
    ) -> PagedLanes:
        """Memory for this many requests of at most so many positions."""
        return PagedLanes(layers, heads, kv_heads, head_size, requests, positions)


class PagedLanes:
    """Keys and values in vLLM's blocks, as many for each lane. Implements `LaneMemory`."""

    def __init__(
        self, layers: int, heads: int, kv_heads: int, head_size: int, lanes: int, positions: int
    ) -> None:
        blocks = -(-positions // BLOCK_POSITIONS)
        # In each block the keys of all its positions, then the values.
        self._blocks = torch.zeros(
            layers, lanes * blocks, kv_heads, 2 * BLOCK_POSITIONS, head_size, dtype=torch.float32
        )
        self._tables = torch.arange(lanes * blocks, dtype=torch.int32).view(lanes, blocks)
        self._heads, self._kv_heads, self._head_size = heads, kv_heads, head_size
        self._table = self._tables[:0]
        self._slots = torch.empty(0, dtype=torch.int64)
        self._starts = self._lengths = torch.empty(0, dtype=torch.int32)
        self._schedule = torch.empty(0)

    @property
    def num_bytes(self) -> int:
        """Of all lanes."""
        return self._blocks.nbytes

    def plan_decode(self, positions: torch.Tensor, longest: int) -> None:
        """[B]: the next call brings one position of each of the first lanes."""
        lanes = torch.arange(len(positions))
        self._plan(lanes, positions[:, None])

    def plan_prompts(self, lanes: torch.Tensor, length: int) -> None:
        """[B]: the next call brings T positions of each of these lanes."""
        self._plan(lanes, torch.arange(length).expand(len(lanes), -1))

    def _plan(self, lanes: torch.Tensor, positions: torch.Tensor) -> None:
        """[B] lanes and their [B, T] positions of the next call."""
        count, length = positions.shape
        self._table = self._tables[lanes]
        first = self._table[:, 0].long()[:, None] * BLOCK_POSITIONS
        self._slots = (first + positions).reshape(-1)
        self._starts = length * torch.arange(count + 1, dtype=torch.int32)
        self._lengths = (positions[:, -1] + 1).int()
        self._schedule = torch.ops._C.get_scheduler_metadata(
            num_req=count,
            num_heads_q=self._heads,
            num_heads_kv=self._kv_heads,
            head_dim=self._head_size,
            seq_lens=self._lengths,
            dtype=torch.float32,
            query_start_loc=self._starts,
            casual=True,
            window_size=-1,
            isa_hint=_ISA,
            enable_kv_split=True,
            dynamic_causal=None,
        )

    def attend(
        self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """[N, H, E], [N, K, E], [N, K, E] -> [N, H * E]; see `AttentionMemory`."""
        key_blocks, value_blocks = self._blocks[layer].chunk(2, dim=2)
        torch.ops._C.cpu_attn_reshape_and_cache(
            keys, values, key_blocks, value_blocks, self._slots, _ISA
        )
        attended = torch.empty(queries.shape, dtype=queries.dtype)
        torch.ops._C.cpu_attention_with_kv_cache(
            query=queries,
            key_cache=key_blocks,
            value_cache=value_blocks,
            output=attended,
            query_start_loc=self._starts,
            seq_lens=self._lengths,
            scale=self._head_size**-0.5,
            causal=True,
            alibi_slopes=None,
            sliding_window_size=-1,
            block_table=self._table,
            softcap=0.0,
            scheduler_metadata=self._schedule,
            s_aux=None,
            dynamic_causal=None,
        )
        return attended.view(len(queries), -1)

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first positions of a lane to another one."""
        count = -(-length // BLOCK_POSITIONS)
        taken, given = (int(self._tables[lane, 0]) for lane in (source, target))
        self._blocks[:, given : given + count] = self._blocks[:, taken : taken + count]
