"""Makes the weights that ship: a checkpoint of CTranslate2 in float16 becomes one in int8.

    python -m cantata_models.whisper.training.quantize_weights FROM_FOLDER TO_FOLDER

CTranslate2's converter quantizes only what it reads from PyTorch. This reads its own format
(version 6, `ctranslate2.specs.model_spec`), and scales each row of each matrix as it does: by 127
over the row's largest magnitude.
"""

from __future__ import annotations

import shutil
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_VERSION = 6
_TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
_NUMBERS = {np.dtype(kind): number for number, kind in _TYPES.items()}
_OTHER_FILES = ("config.json", "tokenizer.json", "vocabulary.txt", "vocabulary.json")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A `model.bin`."""

    name: str
    revision: int
    variables: dict[str, NDArray[Any]]
    aliases: dict[str, str]
    """More names of variables."""


def read_model(path: Path) -> ModelFile:
    """Read a `model.bin`.

    Raises:
        ValueError: it is of another version.
    """
    data = memoryview(path.read_bytes())
    place = 0

    def take(form: str) -> int:
        nonlocal place
        [value] = struct.unpack_from("<" + form, data, place)
        place += struct.calcsize("<" + form)
        return int(value)

    def take_bytes(length: int) -> memoryview:
        nonlocal place
        place += length
        return data[place - length : place]

    def take_name() -> str:
        return bytes(take_bytes(take("H"))[:-1]).decode()

    if (version := take("I")) != _VERSION:
        raise ValueError(f"{path}: version {version}; valid: {_VERSION}")
    name, revision = take_name(), take("I")
    variables = {}
    for _ in range(take("I")):
        variable = take_name()
        shape = [take("I") for _ in range(take("B"))]
        kind = _TYPES[take("B")]
        variables[variable] = np.frombuffer(take_bytes(take("I")), kind).reshape(shape)
    aliases = {take_name(): take_name() for _ in range(take("I"))}
    return ModelFile(name, revision, variables, aliases)


def write_model(model: ModelFile, path: Path) -> None:
    """Write a `model.bin`."""

    def name(text: str) -> bytes:
        return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"

    with path.open("wb") as file:
        file.write(struct.pack("<I", _VERSION) + name(model.name))
        file.write(struct.pack("<II", model.revision, len(model.variables)))
        for variable, value in model.variables.items():
            shape = struct.pack(f"<B{value.ndim}I", value.ndim, *value.shape)
            head = struct.pack("<BI", _NUMBERS[value.dtype], value.nbytes)
            file.write(name(variable) + shape + head + value.tobytes())
        file.write(struct.pack("<I", len(model.aliases)))
        for alias, variable in model.aliases.items():
            file.write(name(alias) + name(variable))


def quantize(model: ModelFile) -> ModelFile:
    """The model with its matrices in int8; convolutions, biases and norms stay as they are."""
    variables: dict[str, NDArray[Any]] = {}
    for name, value in model.variables.items():
        if not name.endswith("/weight") or value.ndim != 2:
            variables[name] = value
            continue
        rows = value.astype(np.float32)
        largest = np.abs(rows).max(axis=1)
        scale = np.float32(127) / np.where(largest == 0, np.float32(127), largest)
        variables[name] = np.rint(rows * scale[:, None]).astype(np.int8)
        variables[f"{name}_scale"] = scale
    scales = {
        f"{alias}_scale": f"{name}_scale"
        for alias, name in model.aliases.items()
        if f"{name}_scale" in variables
    }
    in_order = dict(sorted(variables.items()))
    return ModelFile(model.name, model.revision, in_order, {**model.aliases, **scales})


def main(source: Path, target: Path) -> None:
    """Quantize one checkpoint folder into another."""
    target.mkdir(parents=True, exist_ok=True)
    write_model(quantize(read_model(source / "model.bin")), target / "model.bin")
    for name in _OTHER_FILES:
        if (source / name).exists():
            shutil.copy(source / name, target / name)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
