"""What a folder with voices says of them: `config.json`, read without torch."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cantata.contract.data.errors import ConfigError

CONFIG_FILE = "config.json"


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
