"""Files of voices that are published beside a checkpoint: the state of its language model, or its
input.

Newer files hold keys and values of every layer, older ones the rows that make them. Source: the
package `pocket_tts`, models/model_state.py; its first versions for the older files.

Letters: L layers, P positions, K numbers of a position's keys, H hidden size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from cantata.contract.data.errors import ConfigError
from cantata_models.pocket_tts.config import BackboneSizes

ROWS = "audio_prompt"
_CACHE = re.compile(r"transformer\.layers\.(\d+)\.self_attn/cache")


@dataclass(frozen=True, slots=True)
class PublishedVoice:
    """What the language model gets of a voice; one of both."""

    rows: torch.Tensor | None
    """[P, H] float32."""
    keys: torch.Tensor | None
    """[L, 2, P, K] float32: keys, rotated already, and values."""


def read_voice(path: Path, sizes: BackboneSizes) -> PublishedVoice:
    """Read a voice. Raises ConfigError: the file is damaged, or is not of a model of these
    sizes."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"{path}: not a readable safetensors file: {error}") from error
    if ROWS in tensors:
        rows = tensors[ROWS].float()
        if rows.ndim != 3 or len(rows) != 1 or rows.shape[2] != sizes.size or not rows.shape[1]:
            raise ConfigError(
                f"{path}: {ROWS} must be [1, positions, {sizes.size}], not {list(rows.shape)}"
            )
        return PublishedVoice(rows[0], None)
    return PublishedVoice(None, _read_keys(path, tensors, sizes))


def _read_keys(
    path: Path, tensors: Mapping[str, torch.Tensor], sizes: BackboneSizes
) -> torch.Tensor:
    found = {int(match[1]): name for name in tensors if (match := _CACHE.fullmatch(name))}
    if set(found) != set(range(sizes.layers)):
        raise ConfigError(
            f"{path}: holds neither {ROWS} nor the state of {sizes.layers} layers; of layers it "
            f"has {sorted(found)}"
        )
    layers = [_read_layer(path, tensors, found[index], sizes) for index in range(sizes.layers)]
    if len({layer.shape for layer in layers}) > 1:
        raise ConfigError(f"{path}: its layers have states of different lengths")
    return torch.stack(layers)


def _read_layer(
    path: Path, tensors: Mapping[str, torch.Tensor], name: str, sizes: BackboneSizes
) -> torch.Tensor:
    """[2, P, K] of one layer: as many positions as have been filled."""
    cache, module = tensors[name].float(), name.partition("/")[0]
    heads = (sizes.kv_heads, sizes.head_dim)
    if cache.ndim != 5 or cache.shape[:2] != (2, 1) or cache.shape[3:] != heads:
        raise ConfigError(
            f"{path}: {name} must be [2, 1, positions, {heads[0]}, {heads[1]}], not "
            f"{list(cache.shape)}"
        )
    if (offset := tensors.get(f"{module}/offset")) is not None:
        filled = int(offset.flatten()[0])
    else:
        # In older files, the length of an empty tensor says it.
        filled = len(tensors.get(f"{module}/current_end", cache[0, 0]))
    if not 0 < filled <= cache.shape[2]:
        raise ConfigError(f"{path}: {name} has {cache.shape[2]} positions, not {filled}")
    layer = cache[:, 0, :filled].flatten(2)
    if not torch.isfinite(layer).all():
        raise ConfigError(f"{path}: {name} has numbers that are not finite")
    return layer
