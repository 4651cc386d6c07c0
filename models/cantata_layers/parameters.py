"""Copies a checkpoint's tensors to the parameters of a talker, some of which vLLM's layers fuse."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from cantata.contract.data.errors import ConfigError

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


def load_tensor(targets: Mapping[str, torch.Tensor], name: str, tensor: torch.Tensor) -> str:
    """Copy a checkpoint's tensor to its parameter or buffer, or to its part of a fused one.

    Returns:
        The name in `targets`.

    Raises:
        ConfigError: there is no such parameter or buffer, or its shape differs.
    """
    fused = next((part for part in FUSED if f".{part}." in name), None)
    target_name = name if fused is None else name.replace(fused, FUSED[fused][0])
    target = targets.get(target_name)
    if target is None:
        raise ConfigError(f"the talker has no parameter {name}")
    try:
        if fused is not None:
            target.weight_loader(target, tensor, FUSED[fused][1])  # type: ignore[attr-defined]
        else:
            copy_tensor(target, tensor)
    except (AssertionError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"{name} of {list(tensor.shape)} does not fit the talker: {error}"
        ) from error
    return target_name


def copy_tensor(target: torch.Tensor, tensor: torch.Tensor) -> None:
    """Copy between equal shapes.

    Raises:
        ValueError: they differ.
    """
    if target.shape != tensor.shape:
        raise ValueError(f"expected {list(target.shape)}")
    target.data.copy_(tensor)


def missing_parameters(targets: Mapping[str, torch.Tensor], loaded: set[str]) -> set[str]:
    """What a checkpoint should have had."""
    own = {name for name in targets if any(part in name for part in NOT_IN_CHECKPOINTS)}
    return targets.keys() - own - loaded
