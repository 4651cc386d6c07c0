"""Reads tensors of a published checkpoint: one safetensors file, or several with an index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"


def read_tensors(folder: Path, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Read the tensors whose names start with `prefix`, one by one.

    Yields:
        The name without the prefix, and the tensor in the file's own dtype.

    Raises:
        ConfigError: a file is missing or damaged, or no tensor has this prefix.
    """
    found = False
    for path in _files(folder, prefix):
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - the file is no mapping
                    if name.startswith(prefix):
                        found = True
                        yield name.removeprefix(prefix), file.get_tensor(name)
        except (OSError, SafetensorError) as error:
            raise ConfigError(f"{path}: not a readable safetensors file: {error}") from error
    if not found:
        raise ConfigError(f"{folder}: no tensor's name starts with {prefix!r}")


def _files(folder: Path, prefix: str) -> list[Path]:
    """Return the files with tensors of this prefix."""
    index = folder / INDEX_FILE
    if (folder / SINGLE_FILE).exists():
        return [folder / SINGLE_FILE]
    if not index.exists():
        raise ConfigError(f"{folder}: has neither {SINGLE_FILE} nor {INDEX_FILE}")
    names = {
        str(file)
        for tensor, file in read_json(index).items("weight_map").items()
        if tensor.startswith(prefix)
    }
    missing = sorted(name for name in names if not (folder / name).is_file())
    if missing:
        raise ConfigError(f"{folder}: {INDEX_FILE} names files that are missing: {missing}")
    return [folder / name for name in sorted(names)]
