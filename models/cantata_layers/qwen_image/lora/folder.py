"""Which LoRA files a checkpoint is served with: those in its folder `loras`.

They are named in the checkpoint, because the request builder too must know them: some change the
steps, the guidance and the schedule of every request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cantata.contract.data.errors import ConfigError

FOLDER = "loras"
STRENGTH = re.compile(r"@(?P<strength>\d+(?:\.\d+)?)$")
"""At the end of a file's name, before `.safetensors`."""


@dataclass(frozen=True, slots=True)
class LoraFile:
    """One file, and how strongly it acts."""

    path: Path
    strength: float = 1.0


def lora_files(checkpoint: Path) -> tuple[LoraFile, ...]:
    """Return them in the order of their names; `style@0.8.safetensors` acts with 0.8.

    Raises:
        ConfigError: the folder holds something else.
    """
    folder = checkpoint / FOLDER
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    if other := [path.name for path in paths if path.suffix != ".safetensors"]:
        raise ConfigError(f"{folder}: {other[0]!r} is no LoRA file; valid: *.safetensors")
    return tuple(LoraFile(path, _strength(path)) for path in paths)


def _strength(path: Path) -> float:
    match = STRENGTH.search(path.stem)
    return float(match["strength"]) if match else 1.0
