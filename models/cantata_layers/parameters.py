"""Copies a checkpoint's tensors to the parameters of a talker, some of which hold several."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import torch

from cantata.contract.data.errors import ConfigError
from cantata_layers.weights import SAME_NAMES, WeightMap

FUSED: Mapping[str, tuple[str, str | int]] = {
    "q_proj": ("qkv_proj", "q"),
    "k_proj": ("qkv_proj", "k"),
    "v_proj": ("qkv_proj", "v"),
    "gate_proj": ("gate_up_proj", 0),
    "up_proj": ("gate_up_proj", 1),
}
"""A checkpoint's projection -> vLLM's fused projection and the part of it."""
NOT_IN_CHECKPOINTS = (".attn._", ".rotary_emb.")
"""In the names of what vLLM's layers also hold: cache scales and rotary tables."""


class ParameterLoader:
    """Copies tensors one by one, and knows which are still missing.

    Args:
        targets: parameters and buffers by the talker's names.
        names: the tensors' published names -> the talker's. A part of a fused parameter is named
            as in `FUSED`, one of a stack by its index behind the stack's name.
        stacks: names of the parameters that hold several tensors, one above the other.
    """

    def __init__(
        self,
        targets: Mapping[str, torch.Tensor],
        names: WeightMap = SAME_NAMES,
        stacks: Collection[str] = (),
    ) -> None:
        self._targets, self._names, self._stacks = targets, names, stacks
        self.missing = set(self._iterate_parts())
        """The talker's names of what no tensor was copied to."""

    def load(self, published: str, tensor: torch.Tensor) -> None:
        """Copy a tensor to its parameter, or to its part of one. Raises ConfigError: there is no
        such parameter, or its shape differs."""
        name = self._names.own(published)
        if name is None:
            raise ConfigError(f"the talker has no parameter {published}")
        try:
            self._copy(name, tensor)
        except KeyError as error:
            raise ConfigError(f"the talker has no parameter {published}") from error
        except (AssertionError, IndexError, RuntimeError, ValueError) as error:
            raise ConfigError(
                f"{published} of {list(tensor.shape)} does not fit the talker: {error}"
            ) from error
        self.missing.discard(name)

    def load_all(self, tensors: Iterable[tuple[str, torch.Tensor]], where: Path) -> None:
        """Copy the tensors, and check that nothing is missing. Raises ConfigError: as `load` and
        `check_complete`."""
        for published, tensor in tensors:
            self.load(published, tensor)
        self.check_complete(where)

    def check_complete(self, where: Path) -> None:
        """Check that every parameter was loaded. Raises ConfigError: the checkpoint lacks some;
        names them as published."""
        if self.missing:
            names = sorted(self._names.published(name) for name in self.missing)
            raise ConfigError(f"{where}: lacks weights of {', '.join(names)}")

    def _copy(self, name: str, tensor: torch.Tensor) -> None:
        """Copy to a parameter by the talker's name. Raises KeyError: there is none. AssertionError,
        IndexError, RuntimeError, ValueError: the shape differs."""
        fused = next((part for part in FUSED if f".{part}." in name), None)
        stack, _, index = name.rpartition(".")
        if fused is not None:
            whole, part = FUSED[fused]
            target = self._targets[name.replace(fused, whole)]
            target.weight_loader(target, tensor, part)  # type: ignore[attr-defined]
        elif stack in self._stacks:
            copy_tensor(self._targets[stack].data[int(index)], tensor)
        else:
            _load_share(self._targets[name], tensor)

    def _iterate_parts(self) -> Iterator[str]:
        """Yield the names of what a checkpoint must have."""
        for name, target in self._targets.items():
            fused = [part for part, (whole, _) in FUSED.items() if f".{whole}." in name]
            if any(part in name for part in NOT_IN_CHECKPOINTS):
                continue
            if name in self._stacks:
                yield from (f"{name}.{index}" for index in range(len(target)))
            elif fused:
                yield from (name.replace(FUSED[part][0], part) for part in fused)
            else:
                yield name


def _load_share(target: torch.Tensor, tensor: torch.Tensor) -> None:
    """Copy what this process has of a tensor that vLLM may share among several.

    Raises:
        AssertionError, ValueError: the shape differs.
    """
    load = getattr(target, "weight_loader", None)
    if load is None:
        copy_tensor(target, tensor)
    else:
        load(target, tensor)


def copy_tensor(target: torch.Tensor, tensor: torch.Tensor) -> None:
    """Copy between equal shapes. Raises ValueError: they differ."""
    if target.shape != tensor.shape:
        raise ValueError(f"expected {list(target.shape)}")
    target.data.copy_(tensor)
