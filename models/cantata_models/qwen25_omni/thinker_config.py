"""The thinker's part of a checkpoint's files. Its encoders, transformers' own, read theirs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.omni.thinker_fields import (
    MediaIds,
    ThinkerSampling,
    VisionGrid,
    read_media_ids,
    read_thinker_sampling,
    read_vision_grid,
)
from cantata_layers.qwen3_config import Qwen3Stack, read_qwen3_stack
from cantata_models.qwen25_omni.config import MODEL_TYPE, read_sections

THINKER = "thinker."
"""In front of the names of its tensors."""
VISION_DEFAULTS = {"patch_size": 14, "temporal_patch_size": 2, "spatial_merge_size": 2}
"""What a file need not say."""
WINDOW = 100
"""Half as many mel frames as the audio encoder takes at once."""


@dataclass(frozen=True, slots=True)
class Qwen25OmniThinkerConfig:
    """What reads a conversation and writes its answer."""

    stack: Qwen3Stack
    """Sizes of its Qwen2 layers; the fields are those of Qwen3's."""
    mrope_section: tuple[int, ...]
    """Rotary frequencies of the time, height and width axes, one section after the other."""
    vision: VisionGrid
    media: MediaIds
    positions_per_second: int
    """Steps on the time axis of a video's rotary positions."""
    seconds_per_block: int
    """Of a video with its sound: a block of pictures, then one of sound."""
    sampling: ThinkerSampling


def load_thinker_config(folder: Path) -> Qwen25OmniThinkerConfig:
    """Read a checkpoint's config.json and generation_config.json.

    Raises:
        ConfigError: a file or a value is missing, or a value is wrong or not served.
    """
    root = read_json(folder / "config.json")
    model_type = root.get("model_type", str)
    if model_type != MODEL_TYPE:
        raise ConfigError(f"{root.where}: model_type must be {MODEL_TYPE!r}, not {model_type!r}")
    fields = root.section("thinker_config")
    text, vision = fields.section("text_config"), fields.items("vision_config")
    _check_window(fields.section("audio_config"))
    path = folder / "generation_config.json"
    return Qwen25OmniThinkerConfig(
        stack=read_qwen3_stack(text),
        mrope_section=read_sections(text),
        vision=read_vision_grid(
            JsonFields({**VISION_DEFAULTS, **vision}, f"{fields.where}: vision_config")
        ),
        media=read_media_ids(fields, "token_index"),
        positions_per_second=fields.get("position_id_per_seconds", int),
        seconds_per_block=fields.get("seconds_per_chunk", int, 2),
        sampling=read_thinker_sampling(
            read_json(path) if path.exists() else JsonFields({}, str(path))
        ),
    )


def speaks(folder: Path) -> bool:
    """Whether a checkpoint has a talker.

    Raises:
        ConfigError: config.json is missing or damaged.
    """
    return read_json(folder / "config.json").get("enable_audio_output", bool, True)


def _check_window(audio: JsonFields) -> None:
    window = audio.get("n_window", int, WINDOW)
    if window != WINDOW:
        # WHY: where each window is halved twice by itself, an odd one would add rows.
        raise ConfigError(f"{audio.where}: n_window {window} is not served; valid: {WINDOW}")
