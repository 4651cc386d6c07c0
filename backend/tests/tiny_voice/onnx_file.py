"""Writes the voice's network, samples = gain * sin(phases), as an ONNX file.

The package `onnx` is no dependency; a file is a few protocol-buffer fields (onnx.proto).
"""

from __future__ import annotations

import struct
from pathlib import Path

NAME = "voice.onnx"
_VARINT, _BYTES = 0, 2
_FLOAT, _IR_VERSION, _OPSET = 1, 8, 13


def write_voice(folder: Path) -> None:
    """Write the network into a folder."""
    gain = _number(1, 1) + _number(2, _FLOAT) + _text(8, "gain") + _bytes(9, struct.pack("<f", 0.3))
    graph = (
        _bytes(1, _node("Sin", ["phases"], "wave"))
        + _bytes(1, _node("Mul", ["wave", "gain"], "samples"))
        + _text(2, "voice")
        + _bytes(5, gain)
        + _bytes(11, _vector("phases"))
        + _bytes(12, _vector("samples"))
    )
    opset = _text(1, "") + _number(2, _OPSET)
    (folder / NAME).write_bytes(_number(1, _IR_VERSION) + _bytes(8, opset) + _bytes(7, graph))


def _node(operator: str, inputs: list[str], output: str) -> bytes:
    return b"".join(_text(1, name) for name in inputs) + _text(2, output) + _text(4, operator)


def _vector(name: str) -> bytes:
    length = _bytes(1, _text(2, "n"))
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, _FLOAT) + _bytes(2, length)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
