"""Reads tensors of a published checkpoint: safetensors, in one file or several, or a pickle."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json

STEM = "model"
"""How files of weights begin, unless a format names them otherwise."""
SINGLE_FILE = f"{STEM}.safetensors"
INDEX_FILE = f"{STEM}.safetensors.index.json"
PICKLE_FILE = "pytorch_model.bin"
"""What older checkpoints have instead of safetensors; of another stem, they have `{stem}.pth`."""
PICKLES = (".bin", ".pth")


def read_tensors(
    folder: Path, prefix: str = "", stem: str = STEM
) -> Iterator[tuple[str, torch.Tensor]]:
    """Read the tensors whose names start with `prefix`, one by one.

    Yields:
        The name without the prefix, and the tensor in the file's own dtype.

    Raises:
        ConfigError: a file is missing or damaged, or no tensor has this prefix.
    """
    found = False
    for path in _list_files(folder, prefix, stem):
        read = read_pickle if path.suffix in PICKLES else _iterate_safetensors
        for name, tensor in read(path, prefix):
            found = True
            yield name.removeprefix(prefix), tensor
    if not found:
        raise ConfigError(f"{folder}: no tensor's name starts with {prefix!r}")


def read_rows(folder: Path, name: str, rows: Sequence[int]) -> torch.Tensor:
    """Read some rows of one tensor that is too large to read as a whole, from safetensors.

    Returns:
        [rows, ...] in the file's own dtype.

    Raises:
        ConfigError: a file is missing or damaged, there is no such tensor, or it has fewer rows.
    """
    for path in _list_files(folder, name):
        try:
            with safe_open(path, framework="pt") as file:
                if name not in file.keys():  # noqa: SIM118 - the file is no mapping
                    continue
                tensor = file.get_slice(name)
                count = tensor.get_shape()[0]
                if missing := [row for row in rows if not 0 <= row < count]:
                    raise ConfigError(f"{path}: {name} has {count} rows, none {missing}")
                return torch.cat([tensor[row : row + 1] for row in rows])
        except (OSError, SafetensorError) as error:
            raise _build_unreadable_error(path, error) from error
    raise ConfigError(f"{folder}: no tensor {name!r}")


def read_pickle(path: Path, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Read the tensors of a pickle whose names start with `prefix`.

    Yields:
        The whole name, and the tensor in the file's own dtype.

    Raises:
        ConfigError: the file is missing or damaged, or holds something else.
    """
    try:
        # WHY weights_only: any other pickle can run code.
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
        raise ConfigError(f"{path}: not a readable pickle of tensors: {error}") from error
    # Programs that train put the tensors beside what else they save.
    tensors = tensors.get("state_dict", tensors) if isinstance(tensors, dict) else tensors
    if not isinstance(tensors, dict):
        raise ConfigError(f"{path}: holds no tensors by name")
    for name, tensor in tensors.items():
        if name.startswith(prefix):
            yield name, tensor


def _iterate_safetensors(path: Path, prefix: str) -> Iterator[tuple[str, torch.Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - the file is no mapping
                if name.startswith(prefix):
                    yield name, file.get_tensor(name)
    except (OSError, SafetensorError) as error:
        raise _build_unreadable_error(path, error) from error


def _build_unreadable_error(path: Path, error: Exception) -> ConfigError:
    return ConfigError(f"{path}: not a readable safetensors file: {error}")


def _list_files(folder: Path, prefix: str, stem: str = STEM) -> list[Path]:
    single, index = folder / f"{stem}.safetensors", folder / f"{stem}.safetensors.index.json"
    if single.exists():
        return [single]
    if not index.exists():
        pickled = folder / (PICKLE_FILE if stem == STEM else f"{stem}.pth")
        if pickled.exists():
            return [pickled]
        raise ConfigError(f"{folder}: has neither {single.name}, {index.name} nor {pickled.name}")
    names = {
        str(file)
        for tensor, file in read_json(index).items("weight_map").items()
        if tensor.startswith(prefix)
    }
    missing = sorted(name for name in names if not (folder / name).is_file())
    if missing:
        raise ConfigError(f"{folder}: {index.name} names files that are missing: {missing}")
    return [folder / name for name in sorted(names)]
