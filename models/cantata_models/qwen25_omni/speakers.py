"""The speakers of a checkpoint: its spk_dict.pt."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cantata.contract.data.errors import ConfigError
from cantata_models.qwen25_omni.config import Qwen25OmniConfig

FILE = "spk_dict.pt"


@dataclass(frozen=True, slots=True)
class Qwen25OmniSpeaker:
    """One voice."""

    bos_token: int
    """The text token that announces it to the talker."""
    vector: torch.Tensor
    """[speaker size] float32."""
    mel: torch.Tensor
    """[T, M] float32: log-mel spectrogram of its speech."""


def load_speakers(folder: Path, config: Qwen25OmniConfig) -> Mapping[str, Qwen25OmniSpeaker]:
    """Read the speakers by their exact names, in the file's order. Raises ConfigError: the file is
    missing or damaged, names no speaker, or a speaker lacks a value or has one of another kind."""
    path = folder / FILE
    try:
        # WHY weights_only: any other pickle can run code.
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
        raise ConfigError(f"{path}: not a readable file of speakers: {error}") from error
    if not isinstance(found, dict) or not found:
        raise ConfigError(f"{path}: names no speaker")
    return {
        str(name): _read_speaker(values, config, f"{path}: {name}")
        for name, values in found.items()
    }


def _read_speaker(values: Any, config: Qwen25OmniConfig, where: str) -> Qwen25OmniSpeaker:
    if not isinstance(values, dict):
        raise ConfigError(f"{where}: must be a dictionary, not {type(values).__name__}")
    token = values.get("bos_token")
    if type(token) is not int or not 0 <= token < config.text_vocab_size:
        raise ConfigError(
            f"{where}: bos_token must be a token below {config.text_vocab_size}, not {token!r}"
        )
    dit = config.dit
    vector = _read_tensor(values, "cond", where, (1, dit.speaker_size))
    mel = _read_tensor(values, "ref_mel", where, (1, -1, dit.mels))
    if mel.shape[1] <= dit.speaker.reach:
        raise ConfigError(
            f"{where}: ref_mel must have more than {dit.speaker.reach} frames, not {mel.shape[1]}"
        )
    return Qwen25OmniSpeaker(token, vector[0], mel[0])


def _read_tensor(
    values: Mapping[str, Any], key: str, where: str, shape: tuple[int, ...]
) -> torch.Tensor:
    """A float32 tensor of this shape; -1 is any length."""
    tensor = values.get(key)
    wanted = ", ".join("T" if size < 0 else str(size) for size in shape)
    if not isinstance(tensor, torch.Tensor):
        found = type(tensor).__name__
        raise ConfigError(f"{where}: {key} must be a tensor [{wanted}], not {found}")
    sizes = tuple(tensor.shape)
    fits = len(sizes) == len(shape) and all(
        want in (size, -1) for want, size in zip(shape, sizes, strict=True)
    )
    if not fits:
        raise ConfigError(f"{where}: {key} must be [{wanted}], not {list(sizes)}")
    tensor = tensor.float()
    if not bool(tensor.isfinite().all()):
        raise ConfigError(f"{where}: {key} has values that are not finite")
    return tensor
