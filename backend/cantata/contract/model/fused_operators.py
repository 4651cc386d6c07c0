"""Operators of a decoder that are several kernels in torch and one each on CUDA, with Triton.

On a CPU they are plain functions of torch. Elsewhere each is an operator of torch's (`cantata::`),
so that whatever counts, replays or pretends operators sees one. On CUDA it launches its kernel of
`triton_kernels`; where Triton is not installed, or a kernel is not made for a shape, it is the
plain function there, too.

Letters: N rows, D width, I inner width, R requests, T new positions, P positions of the memory, H
query heads, K key-value heads, E head size, V codes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch.library import Library
from torch.nn import functional

logger = logging.getLogger(__name__)

KERNELS = "cantata.contract.model.triton_kernels"
_LIBRARY = Library("cantata", "FRAGMENT")  # type: ignore[no-untyped-call]
PLAIN: dict[str, Callable[..., Any]] = {}
"""Each operator in torch alone."""


def add_rms_norm(
    residual: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, epsilon: float
) -> torch.Tensor:
    """[..., D] each: `residual` becomes their sum, and its norm is returned."""
    shape = x.shape
    if not residual.is_cpu:  # the kernel knows rows alone
        residual, x = (rows.view(-1, shape[-1]) for rows in (residual, x))
    return torch.as_tensor(_call("add_rms_norm", residual, x, weight, epsilon)).view(shape)


def silu_and_multiply(x: torch.Tensor) -> torch.Tensor:
    """[..., 2 I] gates, then what they open -> [..., I]."""
    return torch.as_tensor(_call("silu_and_multiply", x))


def rotate_heads(
    queries: torch.Tensor, keys: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor
) -> None:
    """Rotate [N, H * E] queries and [N, K * E] keys in place, in float32.

    Args:
        queries: contiguous, in NeoX's layout, as `keys`.
        keys: of the same positions.
        cosines: [N, 1, E] float32.
        sines: the same, the first half negated.
    """
    _call("rotate_heads", queries, keys, cosines, sines)


def attend_in_frame(
    heads: torch.Tensor,
    query_norm: torch.Tensor | None,
    key_norm: torch.Tensor | None,
    epsilon: float,
    cosines: torch.Tensor,
    sines: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    start: int,
) -> torch.Tensor:
    """Normalize and rotate the queries and keys of new positions, remember keys and values, and let
    each position attend to all up to itself.

    Args:
        heads: [R, T, (H + 2 K) * E] queries, keys and values of positions start, start + 1, ...
        query_norm: [E], the weight of the queries' norm. None: they have none.
        key_norm: the same of the keys.
        epsilon: of the norms.
        cosines: [P, E] of rotary positions, the halves alike.
        sines: the same.
        keys: [R, K, P, E], filled before `start`; the new ones are added. So are `values`.
        values: of the same shape.
        start: the first new position; T is 1 unless it is 0.

    Returns:
        [R, T, H * E].
    """
    norms = (query_norm, key_norm, epsilon)
    mixed = _call("attend_in_frame", heads, *norms, cosines, sines, keys, values, start)
    return torch.as_tensor(mixed)


def draw_codes(
    logits: torch.Tensor,
    uniforms: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
) -> torch.Tensor:
    """[R, V] scores -> [R] int64, as `sampling.sample_codes`."""
    return torch.as_tensor(_call("draw_codes", logits, uniforms, temperature, top_k, top_p))


def _call(name: str, first: torch.Tensor, *others: Any) -> Any:
    """WHY a CPU does without the operator: dispatching it takes longer than a small kernel."""
    function = PLAIN[name] if first.is_cpu else getattr(torch.ops.cantata, name)
    return function(first, *others)


def _operator(schema: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Define an operator by what it is in torch."""

    def define(plain: Callable[..., Any]) -> Callable[..., Any]:
        name = schema.partition("(")[0]
        PLAIN[name] = plain
        _LIBRARY.define(schema)  # type: ignore[no-untyped-call]
        _LIBRARY.impl(name, plain, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
        _LIBRARY.impl(name, partial(launch, name), "CUDA")  # type: ignore[no-untyped-call]
        return plain

    return define


def launch(name: str, *inputs: Any) -> Any:
    """Call an operator's kernel, or what it is in torch if there is none for these inputs."""
    kernels = _find_kernels()
    made = NotImplemented if kernels is None else getattr(kernels, name)(*inputs)
    return PLAIN[name](*inputs) if made is NotImplemented else made


@cache
def _find_kernels() -> ModuleType | None:
    try:
        return import_module(KERNELS)
    except ImportError as error:
        logger.warning("Triton's kernels are missing, so steps launch more kernels: %s", error)
        return None


@_operator("add_rms_norm(Tensor(a!) residual, Tensor x, Tensor weight, float epsilon) -> Tensor")
def _add_rms_norm(
    residual: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, epsilon: float
) -> torch.Tensor:
    return functional.rms_norm(residual.add_(x), weight.shape, weight, epsilon)


@_operator("silu_and_multiply(Tensor x) -> Tensor")
def _silu_and_multiply(x: torch.Tensor) -> torch.Tensor:
    gate, up = x.chunk(2, dim=-1)
    return functional.silu(gate) * up


@_operator("rotate_heads(Tensor(a!) queries, Tensor(b!) keys, Tensor cosines, Tensor sines) -> ()")
def _rotate_heads(
    queries: torch.Tensor, keys: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor
) -> None:
    size = cosines.shape[-1]
    for rows in (queries, keys):
        heads = rows.view(len(rows), -1, size)
        swapped = heads.roll(size // 2, dims=-1)
        # In float32 whatever the rows are, and few kernels: each layer does this twice.
        heads.copy_(torch.addcmul(heads * cosines, swapped, sines))


@_operator(
    "attend_in_frame(Tensor heads, Tensor? query_norm, Tensor? key_norm, float epsilon, "
    "Tensor cosines, Tensor sines, Tensor(a!) keys, Tensor(b!) values, int start) -> Tensor"
)
def _attend_in_frame(
    heads: torch.Tensor,
    query_norm: torch.Tensor | None,
    key_norm: torch.Tensor | None,
    epsilon: float,
    cosines: torch.Tensor,
    sines: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    start: int,
) -> torch.Tensor:
    (requests, length, _), (_, kv_heads, _, size) = heads.shape, keys.shape
    end = start + length
    heads = heads.view(requests, length, -1, size).transpose(1, 2)
    query, key, value = heads.tensor_split((-2 * kv_heads, -kv_heads), dim=1)
    cos, sin = cosines[start:end], sines[start:end]
    query = _rotate(_normalize(query, query_norm, epsilon), cos, sin)
    keys[:, :, start:end] = _rotate(_normalize(key, key_norm, epsilon), cos, sin)
    values[:, :, start:end] = value
    mixed = functional.scaled_dot_product_attention(
        query, keys[:, :, :end], values[:, :, :end], is_causal=length > 1, enable_gqa=True
    )
    return mixed.transpose(1, 2).reshape(requests, length, -1)


def _normalize(x: torch.Tensor, weight: torch.Tensor | None, epsilon: float) -> torch.Tensor:
    return x if weight is None else functional.rms_norm(x, weight.shape, weight, epsilon)


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """[..., T, E] rotated by [T, E] angles."""
    first, second = x.chunk(2, dim=-1)
    rotated = x * cos + torch.cat((-second, first), dim=-1) * sin
    return rotated.to(x.dtype)


@_operator(
    "draw_codes(Tensor logits, Tensor uniforms, Tensor temperature, Tensor top_k, Tensor top_p) "
    "-> Tensor"
)
def _draw_codes(
    logits: torch.Tensor,
    uniforms: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
) -> torch.Tensor:
    logits, greedy = logits.float(), temperature <= 0
    temperature = torch.where(greedy, 1.0, temperature)
    probs, order = torch.softmax(logits / temperature[:, None], dim=-1).sort(
        dim=-1, descending=True, stable=True
    )
    rank = torch.arange(logits.shape[-1], device=logits.device)
    top_k = torch.where(top_k > 0, top_k, logits.shape[-1])
    probs = probs * (rank < top_k[:, None])
    total = probs.cumsum(dim=-1)
    # Top-p is a share of what top-k leaves, as in Transformers and vLLM.
    inside = total - probs < top_p[:, None] * total[:, -1:]
    kept = (rank < top_k[:, None]) & (inside | (rank == 0))
    cumulative = (probs * kept).cumsum(dim=-1)
    chosen = (cumulative <= uniforms[:, None] * cumulative[:, -1:]).sum(dim=-1)
    # A uniform just below 1 may round up to the total: the last kept code takes it.
    chosen = torch.minimum(chosen, kept.sum(dim=-1) - 1)
    sampled = order.gather(-1, chosen[:, None]).squeeze(-1)
    return torch.where(greedy, logits.argmax(dim=-1), sampled)
