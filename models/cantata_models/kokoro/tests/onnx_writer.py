"""Writes a small folder of Kokoro's ONNX form.

The network's frames of a phone are its id / 10, but at least 1; its sound is a tone as loud as the
style's mean after `SILENCE` samples of nothing. The package `onnx` is no dependency; a file is a
few protocol-buffer fields (onnx.proto).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

VOICES = ("bf_emma", "af_heart", "am_adam", "ef_dora")
FRAME, SILENCE, STEP = 600, 4800, 0.3
_FLOAT, _INT32, _INT64, _HALF = 1, 6, 7, 10
_INT_ATTRIBUTE = 2
_CONSTANTS = {
    "zero": 0.0,
    "one": 1.0,
    "tenth": 0.1,
    "frame": FRAME,
    "silence": SILENCE,
    "step": STEP,
}


@dataclass(frozen=True, slots=True)
class Export:
    """How a publisher writes the network."""

    tokens: str = "tokens"
    sound: str = "audio"
    durations: str = "/encoder/Clip_output_0"
    """Name of the value inside."""
    returns_durations: bool = False
    whole_speeds: bool = False
    half_styles: bool = False
    """In float16."""
    note: bytes = b""
    """A text in the file that is no part of the graph."""


def write_network(file: Path, export: Export) -> None:
    nodes = [
        _node("Cast", [export.tokens], "ids", to=_FLOAT),
        _node("Cast", ["speed"], "pace", to=_FLOAT),
        _node("Mul", ["ids", "tenth"], "slow"),
        _node("Div", ["slow", "pace"], "paced"),
        _node("Round", ["paced"], "whole"),
        _node("Clip", ["whole", "one"], export.durations),
        _node("ReduceSum", [export.durations], "frames", keepdims=0),
        _node("Mul", ["frames", "frame"], "length"),
        _node("Range", ["zero", "length", "one"], "places"),
        _node("Mul", ["places", "step"], "angle"),
        _node("Sin", ["angle"], "wave"),
        _node("Cast", ["style"], "manner", to=_FLOAT),
        _node("ReduceMean", ["manner"], "gain", keepdims=0),
        _node("Mul", ["wave", "gain"], "loud"),
        _node("GreaterOrEqual", ["places", "silence"], "heard"),
        _node("Cast", ["heard"], "mask", to=_FLOAT),
        _node("Mul", ["loud", "mask"], export.sound),
    ]
    inputs = [
        _value(export.tokens, _INT64, 2),
        _value("style", _HALF if export.half_styles else _FLOAT, 2),
        _value("speed", _INT32 if export.whole_speeds else _FLOAT, 1),
    ]
    outputs = [_value(export.sound, _FLOAT, 1)]
    if export.returns_durations:
        outputs.insert(0, _value(export.durations, _FLOAT, 2))
    fields = ((1, nodes), (5, _constants()), (11, inputs), (12, outputs))
    graph = b"".join(_bytes(field, one) for field, many in fields for one in many)
    opset = _bytes(1, b"") + _number(2, 13)
    model = _number(1, 8) + _bytes(6, export.note) + _bytes(8, opset)
    file.write_bytes(model + _bytes(7, graph + _bytes(2, b"voice")))


def draw_styles() -> dict[str, NDArray[np.float32]]:
    """[510, 1, 256] of each voice."""
    drawn = np.random.default_rng(0)
    return {name: drawn.uniform(0, 1, (510, 1, 256)).astype(np.float32) for name in VOICES}


def write_styles(file: Path, styles: Mapping[str, NDArray[Any]]) -> None:
    """Write voices, as published: an .npz by another name."""
    with file.open("wb") as opened:
        np.savez(opened, **styles)  # type: ignore[arg-type]


def write_folder(folder: Path, export: Export | None = None) -> Path:
    """Write both files into a folder, and return it."""
    folder.mkdir(exist_ok=True)
    write_network(folder / "kokoro-v1.0.onnx", export or Export())
    write_styles(folder / "voices-v1.0.bin", draw_styles())
    return folder


def _constants() -> list[bytes]:
    return [
        _number(2, _FLOAT) + _bytes(8, name.encode()) + _bytes(9, struct.pack("<f", value))
        for name, value in _CONSTANTS.items()
    ]


def _node(operator: str, inputs: list[str], output: str, **attributes: int) -> bytes:
    made = b"".join(_bytes(1, name.encode()) for name in inputs) + _bytes(2, output.encode())
    for name, value in attributes.items():
        kind = _number(20, _INT_ATTRIBUTE)
        made += _bytes(5, _bytes(1, name.encode()) + _number(3, value) + kind)
    return made + _bytes(4, operator.encode())


def _value(name: str, kind: int, rank: int) -> bytes:
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
