"""A GGUF file's folder in the user's cache. Light to import: the package `gguf` is needed once."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_path

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.factory import Factory

SUFFIX = ".gguf"
_MAGIC = b"GGUF"
_LAYOUT = 1
"""Of what the conversion writes. A new number converts every file again."""
_CONVERT = Factory("cantata_models.text_model.gguf.convert:convert")
_log = logging.getLogger(__name__)


def open_gguf(file: Path) -> Path:
    """Return the file as a Hugging Face folder, which is made once and kept by the file's SHA-256.
    Raises ConfigError: it is no GGUF file, is damaged, or cannot be served; says what could."""
    target = find_folder(file)
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _lock(target.with_suffix(".lock")):
            if not target.is_dir():
                _convert_into(file, target)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be converted into {target.parent}: {error}") from error
    return target


def find_folder(file: Path) -> Path:
    """Return where the file's folder is, or will be. Raises ConfigError: the file is no GGUF file,
    or cannot be read."""
    try:
        with file.open("rb") as stream:
            if (magic := stream.read(len(_MAGIC))) != _MAGIC:
                raise ConfigError(f"{file}: not a GGUF file: begins with {magic!r}, not {_MAGIC!r}")
            stream.seek(0)
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    return user_cache_path("cantata") / "gguf" / f"{digest}-{_LAYOUT}"


def _convert_into(file: Path, target: Path) -> None:
    """Make the folder whole, or not at all."""
    part = target.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)  # of a process that was ended
    part.mkdir()
    _log.info("converting %s once, into %s", file, target)
    try:
        _CONVERT(file, part)
        os.replace(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock that no other process holds meanwhile; it ends with the process."""
    with path.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
