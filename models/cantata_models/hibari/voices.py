"""Which voices are on this machine. Nothing is downloaded."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from cantata.contract.data.errors import ConfigError

PACKAGE = "hibari"


@dataclass(frozen=True, slots=True)
class VoiceFile:
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


def list_voices(checkpoint: Path) -> tuple[VoiceFile, ...]:
    """The published voices whose files are in a folder, the default one first.

    Of the package's own folder, also those that the package has downloaded earlier.

    Args:
        checkpoint: has files as published, such as `bf_emma.int8.onnx`, itself or in `voices/`.

    Raises:
        ConfigError: none is there; names the files that may be.
    """
    from hibari.voices import VOICES, voice_path

    folders = [checkpoint, checkpoint / "voices"]
    found = []
    for name, about in VOICES.items():
        files = [folder / about["file"] for folder in folders]
        if checkpoint == find_package_files():
            with suppress(FileNotFoundError):
                files.append(Path(voice_path(name, download_missing=False)))
        file = next((file for file in files if file.is_file()), None)
        if file is not None:
            found.append(VoiceFile(name, file, about["british"], about["gender"]))
    if not found:
        names = ", ".join(about["file"] for about in VOICES.values())
        raise ConfigError(f"{checkpoint}: no voice of hibari's; it may have {names}")
    return tuple(found)
