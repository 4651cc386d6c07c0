"""Whisper's checkpoints: CTranslate2's folders as they are, Hugging Face's converted once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json
from cantata_models.whisper.vocabulary import knows_more_than_english

_BINARY = "model.bin"
_VOCABULARIES = ("vocabulary.json", "vocabulary.txt")


@dataclass(frozen=True, slots=True)
class WhisperConfig:
    """What a folder says of its model."""

    is_multilingual: bool
    mel_bins: int


def read_config(folder: Path) -> WhisperConfig:
    """Read the configuration of a checkpoint in either form.

    Raises:
        ConfigError: a file is missing or damaged.
    """
    if not is_converted(folder):
        config = read_json(folder / "config.json")
        size = config.size("vocab_size")
        return WhisperConfig(knows_more_than_english(size), config.size("num_mel_bins", 80))
    for name in _VOCABULARIES:
        if (path := folder / name).is_file():
            text = path.read_text(encoding="utf-8")
            size = len(json.loads(text)) if path.suffix == ".json" else len(text.splitlines())
            return WhisperConfig(knows_more_than_english(size), _read_mel_bins(folder))
    raise ConfigError(f"{folder}: none of {', '.join(_VOCABULARIES)}")


def is_converted(folder: Path) -> bool:
    """Whether the folder has CTranslate2's form."""
    return (folder / _BINARY).is_file()


def convert(folder: Path) -> Path:
    """The folder in CTranslate2's form: itself, or a copy in the user's cache that was made once.

    Raises:
        ConfigError: the checkpoint cannot be converted.
    """
    if is_converted(folder):
        return folder
    target = user_cache_path("cantata") / "ctranslate2" / _identify(folder)
    if is_converted(target):
        return target
    from ctranslate2.converters import TransformersConverter

    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        try:
            TransformersConverter(str(folder)).convert(str(fresh), force=True)
        except Exception as error:  # transformers' errors have no common type
            raise ConfigError(f"{folder}: cannot be converted ({error})") from error
        try:
            os.replace(fresh, target)
        except OSError:
            if not is_converted(target):  # another process was faster
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def _read_mel_bins(folder: Path) -> int:
    """Large models since version 3 have 128, and say so in a file that others lack."""
    path = folder / "preprocessor_config.json"
    return read_json(path).size("feature_size", 80) if path.is_file() else 80


def _identify(folder: Path) -> str:
    """A name that changes with the files of weights."""
    files = sorted(folder.glob("*.safetensors")) + sorted(folder.glob("*.bin"))
    parts = [f"{file.name}:{file.stat().st_size}:{file.stat().st_mtime_ns}" for file in files]
    digest = hashlib.sha256("\n".join([str(folder.resolve()), *parts]).encode())
    return digest.hexdigest()[:32]
