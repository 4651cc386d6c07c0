"""What a folder with voices says of them: `config.json`, read without torch."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json

CONFIG_FILE = "config.json"


class QuartetVoice(msgspec.Struct, frozen=True):
    """A voice. Its place in the list is its speaker number."""

    id: str
    name: str
    description: str
    gender: str
    """As listeners hear it: "female" or "male"."""
    british: bool


class QuartetConfig(msgspec.Struct, frozen=True):
    model_type: str
    voices: tuple[QuartetVoice, ...]


def load_config(checkpoint: Path) -> QuartetConfig:
    """Raises: ConfigError: the file is missing, or says something else."""
    fields = read_json(checkpoint / CONFIG_FILE)
    config = fields.read(QuartetConfig)
    if not config.voices:
        raise ConfigError(f"{fields.where}: `voices` is empty")
    return config
