"""Random numbers that depend only on the request.

A generator's state would have to survive batching, chunked prefill and preemption. A counter
needs none: the uniform number of (seed, frame, draw) is a hash of these three. The draws of a frame
are its codes, those of a talker's own law, and a last one for the decision to stop, where a talker
makes one.

Letters: F frames, Q draws of a frame.
"""

from __future__ import annotations

import torch

_SEED_SALT = 0x243F6A8885A308D3
_FRAME_STEP = -7046029254386353131  # 0x9E3779B97F4A7C15, the golden ratio's odd increment
_DRAW_STEP = -3335678366873096957  # 0xD1B54A32D192ED03
_MIX_1 = -4658895280553007687  # 0xBF58476D1CE4E5B9
_MIX_2 = -7723592293110705685  # 0x94D049BB133111EB
_MANTISSA_BITS = 24


def counter_uniforms(seed: int, num_frames: int, num_draws: int) -> torch.Tensor:
    """Uniform numbers of one request's frames.

    Args:
        seed: any integer; taken modulo 2**64.
        num_frames: F.
        num_draws: Q.

    Returns:
        [F, Q] float32 in [0, 1), on the CPU.
    """
    frame = torch.arange(1, num_frames + 1, dtype=torch.int64)[:, None]
    draw = torch.arange(1, num_draws + 1, dtype=torch.int64)[None, :]
    key = _mix(torch.tensor(_as_int64(seed ^ _SEED_SALT)))
    bits = _mix(_mix(key + frame * _FRAME_STEP) + draw * _DRAW_STEP)
    return _shift_right(bits, 64 - _MANTISSA_BITS).to(torch.float32) * 2.0**-_MANTISSA_BITS


def _mix(x: torch.Tensor) -> torch.Tensor:
    """A bijection of 64-bit integers whose every output bit depends on every input bit."""
    x = (x ^ _shift_right(x, 30)) * _MIX_1
    x = (x ^ _shift_right(x, 27)) * _MIX_2
    return x ^ _shift_right(x, 31)


def _shift_right(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Logical shift; torch's own keeps the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _as_int64(value: int) -> int:
    """The two's complement reading of an integer's lowest 64 bits."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value
