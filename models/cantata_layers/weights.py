"""A checkpoint's tensors for a network: handed out one by one, or by a table of names.

`WeightMap` is that table, of published names and the network's own. It fills a network from a
checkpoint, reports what does not fit, and lists names and shapes for random checkpoints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import torch
from torch import nn

from cantata.contract.data.errors import ConfigError
from cantata_layers.checkpoint import STEM, read_tensors


class Weights:
    """Float32 tensors by name on one device; each layer takes its own.

    Raises:
        ConfigError: (on construction) as `read_tensors`.
    """

    def __init__(self, folder: Path, prefix: str, device: torch.device, stem: str = STEM) -> None:
        self._where, self._prefix = str(folder), prefix
        self._tensors = _to_float32(read_tensors(folder, prefix, stem), device)

    @classmethod
    def of(
        cls, tensors: Iterable[tuple[str, torch.Tensor]], where: str, device: torch.device
    ) -> Weights:
        """Hand out these tensors, which were read from `where`."""
        weights = cls.__new__(cls)
        weights._where, weights._prefix = where, ""
        weights._tensors = _to_float32(tensors, device)
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


def _to_float32(
    tensors: Iterable[tuple[str, torch.Tensor]], device: torch.device
) -> dict[str, torch.Tensor]:
    return {name: tensor.to(device, torch.float32) for name, tensor in tensors}


Shape: TypeAlias = tuple[int, ...]
ANY = "{}"
"""Stands in a pattern for any part of a name, the same one in both names."""
SHOWN = 4
"""Names in a message."""


class WeightMap:
    """Names of weights, published and own. The first pair whose pattern fits translates a name.

    Args:
        names: published pattern -> own pattern, with as many `{}` each.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._pairs = [(_compile(published), own) for published, own in names.items()]
        self._inverse = [(_compile(own), published) for published, own in names.items()]
        starts = dict.fromkeys(_find_literal_start(published) for published in names)
        self._prefixes = [
            start
            for start in starts
            if not any(start.startswith(other) for other in starts if other != start)
        ]

    def own(self, published: str) -> str | None:
        """The network's name of a published weight; None: it has no such weight."""
        return _translate(published, self._pairs)

    def published(self, own: str) -> str:
        """The published name of one of the network's weights.

        Raises:
            KeyError: no pair names it.
        """
        name = _translate(own, self._inverse)
        if name is None:
            raise KeyError(own)
        return name

    def shapes(self, network: nn.Module) -> dict[str, Shape]:
        """Shapes of a network's weights by their published names; it may be on `meta`."""
        state = network.state_dict().items()
        return {self.published(name): tuple(tensor.shape) for name, tensor in state}

    def read(self, folder: Path, stem: str = STEM) -> Iterator[tuple[str, torch.Tensor]]:
        """Read a checkpoint's tensors that begin as the map's do; raises as `read_tensors`.

        Yields:
            The published name, and the tensor in the file's own dtype.
        """
        for prefix in self._prefixes:
            for name, tensor in read_tensors(folder, prefix, stem):
                yield prefix + name, tensor

    def fill(
        self, network: nn.Module, tensors: Iterable[tuple[str, torch.Tensor]], where: Path
    ) -> None:
        """Give a network its weights, all of them and no others.

        Args:
            network: takes the tensors themselves; usually on `meta`.
            tensors: by published name.
            where: the tensors are from, for messages.

        Raises:
            ConfigError: they do not fit.
        """
        found: dict[str, torch.Tensor] = {}
        names: dict[str, str] = {}
        for published, tensor in tensors:
            own = self.own(published) or published
            found[own], names[own] = tensor, published
        expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
        check_fit(expected, found, where, lambda own: names.get(own) or self.published(own))
        network.load_state_dict(found, assign=True)
        network.eval().requires_grad_(False)


def check_fit(
    expected: Mapping[str, Shape],
    found: Mapping[str, torch.Tensor],
    where: Path,
    show: Callable[[str], str] = str,
) -> None:
    """Check that there are exactly the expected tensors.

    Args:
        show: a name -> the name for the message.

    Raises:
        ConfigError: some are missing, unknown or of other shapes; names them.
    """
    problems = {
        "lacks": [show(name) for name in expected if name not in found],
        "has unknown": [show(name) for name in found if name not in expected],
        "has misshapen": [
            f"{show(name)} {list(found[name].shape)}, not {list(shape)}"
            for name, shape in expected.items()
            if name in found and found[name].shape != shape
        ],
    }
    if said := [f"{what} {_list_names(names)}" for what, names in problems.items() if names]:
        raise ConfigError(f"{where}: {'; '.join(said)}; see the sizes in its config")


def _list_names(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _find_literal_start(pattern: str) -> str:
    """What all names of a pattern begin with, up to a dot."""
    before, dot, _ = pattern.partition(ANY)[0].rpartition(".")
    return before + dot


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile("(.*)".join(re.escape(part) for part in pattern.split(ANY)))


def _translate(name: str, pairs: Iterable[tuple[re.Pattern[str], str]]) -> str | None:
    for pattern, other in pairs:
        if match := pattern.fullmatch(name):
            return other.format(*match.groups())
    return None


SAME_NAMES = WeightMap({ANY: ANY})
"""For a network that has the published names itself."""
