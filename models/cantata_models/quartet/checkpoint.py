"""A folder with the voices: `config.json` says who speaks, `quartet.safetensors` how."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from cantata.contract.data.errors import ConfigError
from cantata_models.quartet.config import load_config
from cantata_models.quartet.network import QuartetNetwork

WEIGHTS_FILE = "quartet.safetensors"
"""In float16."""


def load_network(checkpoint: Path) -> QuartetNetwork:
    """The network in float32, for inference.

    Raises:
        ConfigError: a file is missing, or its weights have other names or sizes.
    """
    path = checkpoint / WEIGHTS_FILE
    network = QuartetNetwork(len(load_config(checkpoint).voices))
    try:
        tensors: dict[str, torch.Tensor] = load_file(path)
        network.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    except (OSError, SafetensorError, RuntimeError) as error:
        raise ConfigError(f"{path}: not the weights of these voices ({error})") from error
    return network.eval().requires_grad_(False)
