"""Writes a small folder of Kokoro's ONNX form.

The network's frames of a phone are its id / 10, but at least 1; its sound is a tone as loud as the
style's mean after `SILENCE` samples of nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata_layers.tests.onnx_parts import (
    FLOAT,
    HALF,
    INT32,
    INT64,
    write_model,
    write_node,
    write_tensor,
    write_value,
)

VOICES = ("bf_emma", "af_heart", "am_adam", "ef_dora")
FRAME, SILENCE, STEP = 600, 4800, 0.3
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
        write_node("Cast", [export.tokens], "ids", to=FLOAT),
        write_node("Cast", ["speed"], "pace", to=FLOAT),
        write_node("Mul", ["ids", "tenth"], "slow"),
        write_node("Div", ["slow", "pace"], "paced"),
        write_node("Round", ["paced"], "whole"),
        write_node("Clip", ["whole", "one"], export.durations),
        write_node("ReduceSum", [export.durations], "frames", keepdims=0),
        write_node("Mul", ["frames", "frame"], "length"),
        write_node("Range", ["zero", "length", "one"], "places"),
        write_node("Mul", ["places", "step"], "angle"),
        write_node("Sin", ["angle"], "wave"),
        write_node("Cast", ["style"], "manner", to=FLOAT),
        write_node("ReduceMean", ["manner"], "gain", keepdims=0),
        write_node("Mul", ["wave", "gain"], "loud"),
        write_node("GreaterOrEqual", ["places", "silence"], "heard"),
        write_node("Cast", ["heard"], "mask", to=FLOAT),
        write_node("Mul", ["loud", "mask"], export.sound),
    ]
    inputs = [
        write_value(export.tokens, INT64, 2),
        write_value("style", HALF if export.half_styles else FLOAT, 2),
        write_value("speed", INT32 if export.whole_speeds else FLOAT, 1),
    ]
    outputs = [write_value(export.sound, FLOAT, 1)]
    if export.returns_durations:
        outputs.insert(0, write_value(export.durations, FLOAT, 2))
    tensors = [
        write_tensor(name, np.array(value, np.float32)) for name, value in _CONSTANTS.items()
    ]
    file.write_bytes(write_model(nodes, tensors, inputs, outputs, export.note))


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
