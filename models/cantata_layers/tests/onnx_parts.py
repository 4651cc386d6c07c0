"""Writes ONNX files: a few protocol-buffer fields (onnx.proto). The package `onnx` is no
dependency."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT, UINT8, INT8, INT32, INT64, HALF = 1, 2, 3, 6, 7, 10
"""`TensorProto.DataType`"""
_TYPES = {
    np.dtype(np.float32): FLOAT,
    np.dtype(np.uint8): UINT8,
    np.dtype(np.int8): INT8,
    np.dtype(np.int64): INT64,
}
_INT_ATTRIBUTE, _TEXT_ATTRIBUTE = 2, 3
MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""


def write_model(
    nodes: Iterable[bytes],
    tensors: Iterable[bytes],
    inputs: Iterable[bytes],
    outputs: Iterable[bytes],
    note: bytes = b"",
) -> bytes:
    """A file's content.

    Args:
        nodes, tensors, inputs, outputs: of the graph.
        note: a text that is no part of the graph.
    """
    fields = ((1, nodes), (5, tensors), (11, inputs), (12, outputs))
    graph = b"".join(_bytes(field, one) for field, many in fields for one in many)
    opsets = [_bytes(1, b"") + _number(2, 13), _bytes(1, MICROSOFT.encode()) + _number(2, 1)]
    model = _number(1, 8) + _bytes(6, note) + b"".join(_bytes(8, one) for one in opsets)
    return model + _bytes(7, graph + _bytes(2, b"voice"))


def write_node(
    operator: str,
    inputs: Sequence[str],
    output: str,
    name: str = "",
    domain: str = "",
    **attributes: int | str,
) -> bytes:
    """A node of one output."""
    made = b"".join(_bytes(1, one.encode()) for one in inputs) + _bytes(2, output.encode())
    for label, value in attributes.items():
        if isinstance(value, str):
            content = _bytes(4, value.encode()) + _number(20, _TEXT_ATTRIBUTE)
        else:
            content = _number(3, value) + _number(20, _INT_ATTRIBUTE)
        made += _bytes(5, _bytes(1, label.encode()) + content)
    return (
        made + _bytes(3, name.encode()) + _bytes(4, operator.encode()) + _bytes(7, domain.encode())
    )


def write_tensor(name: str, values: NDArray[Any]) -> bytes:
    """Numbers that the graph has."""
    shape = b"".join(_number(1, size) for size in values.shape)
    kind = _number(2, _TYPES[values.dtype])
    return shape + kind + _bytes(8, name.encode()) + _bytes(9, values.tobytes())


def write_value(name: str, kind: int, rank: int) -> bytes:
    """An input or output of any size."""
    shape = b"".join(_bytes(1, _bytes(2, f"{name}{axis}".encode())) for axis in range(rank))
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
