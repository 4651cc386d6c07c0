"""Dataclasses as bytes: a MessagePack head, then the arrays in it as they lie in memory. What
arrives is checked against the types; nothing in it is ever executed.

A body is the head's length (4 bytes, network order), the head, and the arrays, each at a multiple
of eight bytes. In the head, an array is its NumPy type, its shape and its place after the head.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin

import msgspec
import numpy as np

from cantata.ipc.wire import BrokenChannel, Buffer

T = TypeVar("T")
_LENGTH_BYTES = 4
_ALIGNED = 8
_MAX_AXES = 4
_TYPES = {
    np.dtype(kind).str: kind
    for kind in (np.float32, np.float64, np.uint8, np.int32, np.int64, np.bool_)
}
"""What arrays may hold: little-endian, as the machines that this runs on."""


def encode(message: object) -> tuple[Buffer, ...]:
    """A dataclass as the parts of a body; arrays are not copied and must not change any more."""
    arrays: list[Buffer] = []
    size = 0

    def pack(value: object) -> object:
        nonlocal size
        if isinstance(value, np.generic):
            return value.item()
        if not isinstance(value, np.ndarray) or value.dtype.str not in _TYPES:
            raise TypeError(f"a {type(value).__name__} cannot be sent to another machine")
        place = size
        if value.size:
            arrays.append(np.ascontiguousarray(value).data.cast("B"))
            arrays.append(bytes(-value.nbytes % _ALIGNED))
            size += value.nbytes + -value.nbytes % _ALIGNED
        return value.dtype.str, value.shape, place

    head = msgspec.msgpack.encode(message, enc_hook=pack)
    length = len(head).to_bytes(_LENGTH_BYTES, "big")
    return length + head + bytes(-(_LENGTH_BYTES + len(head)) % _ALIGNED), *arrays


def decode(body: Buffer, kind: type[T]) -> T:
    """What `encode` made; its arrays lie in `body`. Raises BrokenChannel: the body is no such
    message."""
    view = memoryview(body)
    end = _LENGTH_BYTES + int.from_bytes(view[:_LENGTH_BYTES], "big")
    tail = view[end + -end % _ALIGNED :]

    def unpack(wanted: type, value: Any) -> Any:
        if get_origin(wanted) is not np.ndarray:
            raise NotImplementedError(f"messages have no {wanted}")
        return _decode_array(tail, wanted, value)

    try:
        return msgspec.msgpack.decode(view[_LENGTH_BYTES:end], type=kind, dec_hook=unpack)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BrokenChannel(f"what arrived is no {kind.__name__}: {error}") from error


@cache
def _get_number_type(wanted: type) -> type:
    """What an array's type says of its numbers: of `NDArray[np.float32]`, `np.float32`."""
    [number] = get_args(get_args(wanted)[1])
    return cast(type, number)


def _decode_array(tail: memoryview, wanted: type, value: Any) -> np.ndarray[Any, Any]:
    """The array that a head describes. Raises ValueError: it does not lie in the tail, or is none
    of the wanted type."""
    described = msgspec.convert(value, tuple[str, tuple[int, ...], int])
    name, shape, place = described
    number = _get_number_type(wanted)
    if name not in _TYPES or number not in (Any, _TYPES[name]):
        raise ValueError(f"an array of {name} instead of {number}")
    if len(shape) > _MAX_AXES or min(shape, default=0) < 0:
        raise ValueError(f"an array of shape {shape}")
    dtype = np.dtype(name)
    end = place + math.prod(shape) * dtype.itemsize
    if place < 0 or end > len(tail):
        raise ValueError(f"an array of shape {shape} in {len(tail)} bytes")
    return np.frombuffer(tail[place:end], dtype).reshape(shape)
