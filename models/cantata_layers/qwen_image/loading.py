"""Gives networks the weights of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn

from cantata.contract.data.errors import ConfigError


def fill(network: nn.Module, tensors: Iterable[tuple[str, torch.Tensor]], folder: Path) -> None:
    """Give a network without memory its weights, all of them and no others.

    Args:
        network: made on the `meta` device.
        tensors: by the network's own names.
        folder: where they are from, for messages.

    Raises:
        ConfigError: they do not fit.
    """
    try:
        network.load_state_dict(dict(tensors), assign=True)
    except RuntimeError as error:
        raise ConfigError(f"{folder}: the weights do not fit its config.json: {error}") from error
    network.eval().requires_grad_(False)


def dtype_on(device: torch.device) -> torch.dtype:
    """Float32 on a CPU, bfloat16 elsewhere."""
    return torch.float32 if device.type == "cpu" else torch.bfloat16
