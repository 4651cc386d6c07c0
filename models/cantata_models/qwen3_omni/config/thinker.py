"""The thinker's part of config.json."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields
from cantata_layers.omni.thinker_fields import (
    MediaIds,
    VisionGrid,
    read_media_ids,
    read_vision_grid,
)
from cantata_layers.qwen3_moe_config import Qwen3MoeStack, read_qwen3_moe_stack


@dataclass(frozen=True, slots=True)
class Qwen3OmniThinkerConfig:
    """The thinker. Its encoders are transformers' own, which read the rest of theirs."""

    backbone: Qwen3MoeStack
    deepstack_levels: int
    """First layers that add features of pictures."""
    mel_bins: int
    vision: VisionGrid
    media: MediaIds
    positions_per_second: int
    """Steps on the time axis of a video's rotary positions."""


def read_thinker(fields: JsonFields) -> Qwen3OmniThinkerConfig:
    """Read `thinker_config`.

    Raises:
        ConfigError: a value is missing or of the wrong type, or is not served.
    """
    audio, vision = fields.section("audio_config"), fields.section("vision_config")
    _check_window(audio)
    return Qwen3OmniThinkerConfig(
        backbone=read_qwen3_moe_stack(fields.section("text_config")),
        deepstack_levels=len(vision.integers("deepstack_visual_indexes")),
        mel_bins=audio.get("num_mel_bins", int),
        vision=read_vision_grid(vision),
        media=read_media_ids(fields, "token_id"),
        positions_per_second=fields.get("position_id_per_seconds", int),
    )


def _check_window(audio: JsonFields) -> None:
    window = audio.get("n_window", int)
    if window != 50:
        # WHY: the number of rows of a whole window, 13, follows from 100 mel frames.
        raise ConfigError(f"{audio.where}: n_window {window} is not served; valid: 50")
