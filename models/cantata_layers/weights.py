"""Hands out a checkpoint's tensors one by one and checks their shapes."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata.contract.data.errors import ConfigError
from cantata_layers.checkpoint import read_tensors


class Weights:
    """Float32 tensors by name on one device; each layer takes its own.

    Raises:
        ConfigError: (on construction) as `read_tensors`.
    """

    def __init__(self, folder: Path, prefix: str, device: torch.device) -> None:
        self._where, self._prefix = str(folder), prefix
        self._tensors = {
            name: tensor.to(device, torch.float32) for name, tensor in read_tensors(folder, prefix)
        }

    def take(self, name: str, *shape: int) -> torch.Tensor:
        """Return a tensor of this shape and drop it from the collection.

        Raises:
            ConfigError: the tensor is missing or its shape differs.
        """
        tensor = self._tensors.pop(name, None)
        where = f"{self._where}: tensor {self._prefix + name!r}"
        if tensor is None:
            raise ConfigError(f"{where} is missing")
        if tensor.shape != shape:
            raise ConfigError(f"{where} must be {list(shape)}, not {list(tensor.shape)}")
        return tensor
