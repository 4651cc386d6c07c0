"""A folder with the voices: `config.json` says who speaks, `quartet.safetensors` how."""

from __future__ import annotations

from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from cantata.contract.data.errors import ConfigError
from cantata_models.quartet.network import QuartetNetwork

CONFIG_FILE, WEIGHTS_FILE = "config.json", "quartet.safetensors"
"""The weights are float16."""


class QuartetVoice(msgspec.Struct, frozen=True):
    """One of the voices. Its speaker is its place in the list."""

    id: str
    name: str
    description: str
    gender: str
    """As listeners hear it: "female" or "male"."""
    british: bool


class QuartetConfig(msgspec.Struct, frozen=True):
    """What `config.json` says."""

    model_type: str
    voices: tuple[QuartetVoice, ...]


def load_config(checkpoint: Path) -> QuartetConfig:
    """Raises: ConfigError: the file is missing, or says something else."""
    path = checkpoint / CONFIG_FILE
    try:
        config = msgspec.json.decode(path.read_bytes(), type=QuartetConfig)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    if not config.voices:
        raise ConfigError(f"{path}: `voices` is empty")
    return config


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
