"""The kernels of `fused_operators` on CUDA, in Triton.

Each computes in float32 and rounds where torch does in several kernels, so results differ by the
order of sums alone. A function returns NotImplemented for shapes that its kernel is not made for.
They have not run on a GPU: tests run them in Triton's interpreter, and compile them for compute
capability 9.0.

Letters as in `fused_operators`.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator, import-untyped"
from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

MAX_WIDTH = 8192
"""Values of a row, or of a tile of keys, that one program holds."""
MAX_CODES = 4096
"""That one program sorts."""
BLOCK = 1024


@triton.jit
def add_rms_norm_kernel(
    residual,
    x,
    weight,
    output,
    residual_stride,
    x_stride,
    size,
    epsilon,
    columns: tl.constexpr,
):
    """A program for each row; columns is D, rounded up to a power of two."""
    row, column = tl.program_id(0), tl.arange(0, columns)
    inside = column < size
    number = output.dtype.element_ty
    place = residual + row * residual_stride + column
    added = tl.load(x + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    total = tl.load(place, mask=inside, other=0.0).to(tl.float32) + added
    total = total.to(number).to(tl.float32)
    tl.store(place, total.to(number), mask=inside)
    scale = tl.rsqrt(tl.sum(total * total, axis=0) / size + epsilon)
    gain = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(output + row * size + column, (total * scale * gain).to(number), mask=inside)


@triton.jit
def silu_and_multiply_kernel(x, output, inner, columns: tl.constexpr):
    """A program for each row and columns of its values."""
    row, column = tl.program_id(0), tl.program_id(1) * columns + tl.arange(0, columns)
    inside = column < inner
    number = output.dtype.element_ty
    start = x + row * 2 * inner + column
    gate = tl.load(start, mask=inside, other=0.0).to(tl.float32)
    gate = (gate / (1.0 + tl.exp(-gate))).to(number).to(tl.float32)
    up = tl.load(start + inner, mask=inside, other=0.0).to(tl.float32)
    tl.store(output + row * inner + column, (gate * up).to(number), mask=inside)


@triton.jit
def rotate_heads_kernel(
    queries,
    keys,
    cosines,
    sines,
    num_heads: tl.constexpr,
    num_kv_heads: tl.constexpr,
    head_size: tl.constexpr,
):
    """A program for each row and head. One thread holds both halves of what it writes over."""
    row, head = tl.program_id(0), tl.program_id(1)
    half_size: tl.constexpr = head_size // 2
    half = tl.arange(0, half_size)
    if head < num_heads:
        place = queries + (row * num_heads + head) * head_size + half
    else:
        place = keys + (row * num_kv_heads + head - num_heads) * head_size + half
    first, second = tl.load(place).to(tl.float32), tl.load(place + half_size).to(tl.float32)
    angle = row * head_size + half
    left = first * tl.load(cosines + angle) + second * tl.load(sines + angle)
    right = second * tl.load(cosines + angle + half_size) + first * tl.load(
        sines + angle + half_size
    )
    tl.store(place, left.to(queries.dtype.element_ty))
    tl.store(place + half_size, right.to(queries.dtype.element_ty))


@triton.jit
def _rotate_rows(
    rows, norm, cosines, sines, offset, angle, inside, epsilon, head_size: tl.constexpr
):
    """[..., E] rows at these offsets -> the same in float32, normalized and rotated; their angles
    begin at `angle`."""
    number = rows.dtype.element_ty
    column = tl.arange(0, head_size)
    other_column = (column + head_size // 2) % head_size
    row = tl.load(rows + offset + column, mask=inside, other=0.0).to(tl.float32)
    other = tl.load(rows + offset + other_column, mask=inside, other=0.0).to(tl.float32)
    if norm is not None:
        mean = tl.sum(row * row, axis=-1, keep_dims=True) / head_size
        scale = tl.rsqrt(mean + epsilon)
        row = row * scale * tl.load(norm + column).to(tl.float32)
        other = other * scale * tl.load(norm + other_column).to(tl.float32)
        row, other = row.to(number).to(tl.float32), other.to(number).to(tl.float32)
    cos = tl.load(cosines + angle + column, mask=inside, other=0.0).to(tl.float32)
    sin = tl.load(sines + angle + column, mask=inside, other=0.0).to(tl.float32)
    other = tl.where(column < head_size // 2, -other, other)
    return (row * cos + other * sin).to(number).to(tl.float32)


@triton.jit(do_not_specialize=["start"])
def attend_in_frame_kernel(
    heads,
    query_norm,
    key_norm,
    cosines,
    sines,
    keys,
    values,
    output,
    start,
    epsilon,
    scale,
    num_heads: tl.constexpr,
    num_kv_heads: tl.constexpr,
    head_size: tl.constexpr,
    length: tl.constexpr,
    positions: tl.constexpr,
    rows: tl.constexpr,
):
    """A program for each request and key-value head; rows is P, rounded up to a power of two. What
    it adds to the memory it never reads from there: other threads may have written it."""
    request, kv_head = tl.program_id(0), tl.program_id(1)
    width: tl.constexpr = (num_heads + 2 * num_kv_heads) * head_size
    number = output.dtype.element_ty
    position, column = tl.arange(0, rows)[:, None], tl.arange(0, head_size)[None, :]
    old = position < start
    new = (position >= start) & (position < start + length)
    first = request * length * width
    place = ((request * num_kv_heads + kv_head) * positions + position) * head_size + column

    key_at = first + (position - start) * width + (num_heads + kv_head) * head_size
    angle = position * head_size
    key = _rotate_rows(heads, key_norm, cosines, sines, key_at, angle, new, epsilon, head_size)
    tl.store(keys + place, key.to(number), mask=new)
    key = tl.where(new, key, tl.load(keys + place, mask=old, other=0.0).to(tl.float32))

    value_at = heads + key_at + num_kv_heads * head_size + column
    value = tl.load(value_at, mask=new, other=0.0).to(tl.float32)
    tl.store(values + place, value.to(number), mask=new)
    value = tl.where(new, value, tl.load(values + place, mask=old, other=0.0).to(tl.float32))

    for step in tl.static_range(length):
        for index in tl.static_range(num_heads // num_kv_heads):
            head = kv_head * (num_heads // num_kv_heads) + index
            query_at = first + step * width + head * head_size
            angle = (start + step) * head_size
            inside = tl.full((1, head_size), 1, tl.int1)
            query = _rotate_rows(
                heads, query_norm, cosines, sines, query_at, angle, inside, epsilon, head_size
            )
            scores = tl.sum(query * key, axis=1, keep_dims=True) * scale
            scores = tl.where(position <= start + step, scores, float("-inf"))
            share = tl.exp(scores - tl.max(scores, axis=0, keep_dims=True))
            share = share / tl.sum(share, axis=0, keep_dims=True)
            mixed = tl.sum(share * value, axis=0)
            target = ((request * length + step) * num_heads + head) * head_size + tl.arange(
                0, head_size
            )
            tl.store(output + target, mixed.to(number))


@triton.jit
def draw_codes_kernel(
    logits,
    uniforms,
    temperature,
    top_k,
    top_p,
    output,
    logits_stride,
    uniforms_stride,
    size,
    codes: tl.constexpr,
):
    """A program for each request; codes is V, rounded up to a power of two.

    A code's key is its probability, then its place counted from the end: a descending order of keys
    is stable. Probabilities are no less than zero, so their bits are ordered as they are.
    """
    row, rank = tl.program_id(0), tl.arange(0, codes)
    score = tl.load(logits + row * logits_stride + rank, mask=rank < size, other=float("-inf"))
    score = score.to(tl.float32)
    heat = tl.load(temperature + row)
    scaled = score / tl.where(heat > 0, heat, 1.0)
    weight = tl.exp(scaled - tl.max(scaled, axis=0))
    weight = weight / tl.sum(weight, axis=0)
    bits = weight.to(tl.int32, bitcast=True).to(tl.int64)
    ordered = tl.sort((bits << 32) | (codes - 1 - rank).to(tl.int64), descending=True)
    code = codes - 1 - (ordered & (codes - 1)).to(tl.int32)
    probability = (ordered >> 32).to(tl.int32).to(tl.float32, bitcast=True)

    most = tl.load(top_k + row)
    ranked = rank < tl.where(most > 0, most, size)
    probability = tl.where(ranked, probability, 0.0)
    total = tl.cumsum(probability, axis=0)
    inside = total - probability < tl.load(top_p + row) * tl.max(total, axis=0)
    kept = ranked & (inside | (rank == 0))
    cumulative = tl.cumsum(tl.where(kept, probability, 0.0), axis=0)
    bound = tl.load(uniforms + row * uniforms_stride) * tl.max(cumulative, axis=0)
    chosen = tl.sum((cumulative <= bound).to(tl.int32), axis=0)
    chosen = tl.minimum(chosen, tl.sum(kept.to(tl.int32), axis=0) - 1)
    chosen = tl.where(heat > 0, chosen, 0)
    found = tl.sum(tl.where(rank == chosen, code, 0), axis=0)
    best = tl.argmax(score, axis=0)
    # Whatever the scores are, the code exists: its embedding is looked up next.
    found = tl.minimum(tl.where(heat > 0, found, best), size - 1)
    tl.store(output + row, found.to(tl.int64))


def add_rms_norm(
    residual: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, epsilon: float
) -> Any:
    """[N, D] each, whose rows may be apart."""
    rows, size = x.shape
    alike = residual.dtype == x.dtype == weight.dtype
    if not alike or size > MAX_WIDTH or residual.stride(1) != 1 or x.stride(1) != 1:
        return NotImplemented
    output = torch.empty(rows, size, dtype=x.dtype, device=x.device)
    sizes = (residual.stride(0), x.stride(0), size, epsilon)
    add_rms_norm_kernel[(rows,)](residual, x, weight, output, *sizes, triton.next_power_of_2(size))
    return output


def silu_and_multiply(x: torch.Tensor) -> Any:
    """[..., 2 I] -> [..., I]."""
    if not x.is_contiguous():
        return NotImplemented
    inner = x.shape[-1] // 2
    output = x.new_empty(*x.shape[:-1], inner)
    grid = (x.numel() // x.shape[-1], triton.cdiv(inner, BLOCK))
    silu_and_multiply_kernel[grid](x, output, inner, BLOCK)
    return output


def rotate_heads(
    queries: torch.Tensor, keys: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor
) -> Any:
    """In place."""
    size = cosines.shape[-1]
    if size < 2 or not _is_power_of_two(size):
        return NotImplemented
    heads, kv_heads = (rows.shape[1] // size for rows in (queries, keys))
    grid = (len(queries), heads + kv_heads)
    rotate_heads_kernel[grid](queries, keys, cosines, sines, heads, kv_heads, size)
    return None


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
) -> Any:
    """[R, T, (H + 2 K) * E] -> [R, T, H * E]."""
    (requests, length, width), (_, kv_heads, positions, size) = heads.shape, keys.shape
    rows = triton.next_power_of_2(positions)
    contiguous = (part.is_contiguous() for part in (heads, cosines, sines, keys, values))
    if not all(contiguous) or not _is_power_of_two(size) or rows * size > MAX_WIDTH:
        return NotImplemented
    query_heads = width // size - 2 * kv_heads
    output = heads.new_empty(requests, length, query_heads * size)
    sizes = (query_heads, kv_heads, size, length, positions, rows)
    norms, angles = (query_norm, key_norm), (cosines, sines)
    attend_in_frame_kernel[requests, kv_heads](
        *(heads, *norms, *angles, keys, values, output, start, epsilon, size**-0.5, *sizes)
    )
    return output


def draw_codes(
    logits: torch.Tensor,
    uniforms: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
) -> Any:
    """[R, V] -> [R]."""
    rows, size = logits.shape
    each = all(part.is_contiguous() for part in (temperature, top_k, top_p))
    if size > MAX_CODES or logits.stride(1) != 1 or not each:
        return NotImplemented
    codes = torch.empty(rows, dtype=torch.int64, device=logits.device)
    inputs = (logits, uniforms, temperature, top_k, top_p, codes)
    strides = (logits.stride(0), uniforms.stride(0))
    draw_codes_kernel[(rows,)](*inputs, *strides, size, triton.next_power_of_2(size))
    return codes


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
