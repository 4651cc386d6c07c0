"""Hands out a checkpoint's tensors one by one and checks their shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import torch

from cantata.contract.data.errors import ConfigError
from cantata_layers.checkpoint import STEM, read_tensors


class Weights:
    """Float32 tensors by name on one device; each layer takes its own.

    Raises:
        ConfigError: (on construction) as `read_tensors`.
    """

    def __init__(self, folder: Path, prefix: str, device: torch.device, stem: str = STEM) -> None:
        self._where, self._prefix = str(folder), prefix
        self._tensors = _float32(read_tensors(folder, prefix, stem), device)

    @classmethod
    def of(
        cls, tensors: Iterable[tuple[str, torch.Tensor]], where: str, device: torch.device
    ) -> Weights:
        """Hand out these tensors, which were read from `where`."""
        weights = cls.__new__(cls)
        weights._where, weights._prefix = where, ""
        weights._tensors = _float32(tensors, device)
        return weights

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


ReadWeights: TypeAlias = Callable[[Path, str, torch.device], Weights]
"""A checkpoint's folder, a prefix of names and a device -> the tensors; usually `Weights`."""


class TakenShapes:
    """Notes which tensors networks take, and so what a checkpoint for them must hold."""

    def __init__(self) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}
        """By published name."""

    def read(self, folder: Path, prefix: str, device: torch.device) -> Weights:
        """Hand out tensors without memory, in place of those of a checkpoint."""
        return _Noted(prefix, self.shapes)


class _Noted(Weights):
    def __init__(self, prefix: str, shapes: dict[str, tuple[int, ...]]) -> None:
        self._prefix, self._shapes = prefix, shapes

    def take(self, name: str, *shape: int) -> torch.Tensor:
        self._shapes[self._prefix + name] = shape
        return torch.empty(shape, device="meta")


def _float32(
    tensors: Iterable[tuple[str, torch.Tensor]], device: torch.device
) -> dict[str, torch.Tensor]:
    return {name: tensor.to(device, torch.float32) for name, tensor in tensors}
