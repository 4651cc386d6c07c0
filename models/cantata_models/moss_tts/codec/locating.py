"""Finds the tokenizer that a model's checkpoint names, without a network."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json

KEYS = ("audio_tokenizer_name_or_path", "audio_tokenizer_pretrained_name_or_path")
"""Where Local's and Nano's config.json name the tokenizer, by its id on the hub."""
INSIDE = "audio_tokenizer"
"""Subfolder of a checkpoint that may hold it."""


def tokenizer_folder(checkpoint: Path) -> Path:
    """Return the folder of a checkpoint's tokenizer.

    It is beside the checkpoint, under the last part of its id, or inside the checkpoint.

    Raises:
        ConfigError: the checkpoint names no tokenizer, or neither folder holds one.
    """
    root = read_json(checkpoint / "config.json")
    name = next((found for key in KEYS if (found := root.get(key, str, ""))), None)
    if name is None:
        raise ConfigError(f"{root.where}: names no audio tokenizer ({' or '.join(KEYS)})")
    beside = checkpoint.absolute().parent / PurePosixPath(name).name
    inside = checkpoint / INSIDE
    for folder in (beside, inside):
        if (folder / "config.json").is_file():
            return folder
    raise ConfigError(
        f"{checkpoint}: its audio tokenizer {name!r} is missing; "
        f"download it into {beside} or {inside}"
    )
