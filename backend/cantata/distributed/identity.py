"""Whether two machines would make the same samples, as far as files and settings can tell."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from cantata.config import Deployment

_BLOCK_BYTES = 64 << 10
_BLOCKS = 16
"""Read of each file, evenly spread: whole ones would take minutes at some models' size."""
_PACKAGES = ("cantata", "torch")


def hash_identity(checkpoint: Path, deployment: Deployment) -> str:
    """A digest of a model's files, of how it is deployed wherever its stages run, and of the
    packages that compute it."""
    digest = hashlib.sha256()
    for name, number in versions().items():
        digest.update(f"{name} {number}\n".encode())
    digest.update(deployment.placed_here.model_dump_json().encode())
    digest.update(hash_files(checkpoint).encode())
    return digest.hexdigest()


def versions() -> Mapping[str, str]:
    """Versions of the packages that compute samples, by name."""
    return {name: version(name) for name in _PACKAGES}


def hash_files(checkpoint: Path) -> str:
    """A digest of the files in a model's folder: their names, sizes and parts of their content."""
    digest = hashlib.sha256()
    files = [path for path in checkpoint.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: path.relative_to(checkpoint).as_posix()):
        size = path.stat().st_size
        digest.update(f"\n{path.relative_to(checkpoint).as_posix()} {size}\n".encode())
        with path.open("rb") as file:
            for number in range(_BLOCKS):
                file.seek(number * max(0, size - _BLOCK_BYTES) // (_BLOCKS - 1))
                digest.update(file.read(_BLOCK_BYTES))
                if size <= _BLOCK_BYTES:
                    break
    return digest.hexdigest()
