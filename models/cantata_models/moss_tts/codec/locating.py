"""Finds the tokenizer that a model's checkpoint names, without a network."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json
from cantata_models.moss_tts.codec.config import load_tokenizer_config
from cantata_models.moss_tts.config.shared import MossConfig

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


def checked_tokenizer(checkpoint: Path, config: MossConfig) -> Path:
    """Return the folder of a checkpoint's tokenizer, whose config.json fits the checkpoint's.

    Raises:
        ConfigError: as `tokenizer_folder`, or it cannot be served, or its codes are others.
    """
    folder = tokenizer_folder(checkpoint)
    size = load_tokenizer_config(folder, config.num_codebooks).quantiser.codebook_size
    if size != config.codebook_size:
        raise ConfigError(
            f"{folder}: codebooks of {size} codes; those of {checkpoint} have "
            f"{config.codebook_size}"
        )
    return folder
