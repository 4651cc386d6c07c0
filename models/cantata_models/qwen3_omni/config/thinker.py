"""The thinker's part of config.json."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields
from cantata_layers.qwen3_moe_config import Qwen3MoeStack, read_qwen3_moe_stack


@dataclass(frozen=True, slots=True)
class MediaIds:
    """Tokens that stand for media in a prompt."""

    audio: int
    """Repeated, as the next two: one for each row that an encoder makes."""
    image: int
    video: int
    audio_start: int
    audio_end: int
    vision_start: int
    vision_end: int

    @property
    def pads(self) -> frozenset[int]:
        """The repeated ones."""
        return frozenset({self.audio, self.image, self.video})


@dataclass(frozen=True, slots=True)
class VisionGrid:
    """How pictures become patches, and patches rows."""

    patch_size: int
    """Pixels."""
    temporal_patch_size: int
    """Frames."""
    merge_size: int
    """Patches of a row, in each direction."""


@dataclass(frozen=True, slots=True)
class ThinkerConfig:
    """The thinker. Its encoders are transformers' own, which read the rest of theirs."""

    backbone: Qwen3MoeStack
    deepstack_levels: int
    """First layers that add features of pictures."""
    mel_bins: int
    vision: VisionGrid
    media: MediaIds
    positions_per_second: int
    """Steps on the time axis of a video's rotary positions."""


def read_thinker(fields: JsonFields) -> ThinkerConfig:
    """Read `thinker_config`.

    Raises:
        ConfigError: a value is missing or of the wrong type, or is not served.
    """
    audio, vision = fields.section("audio_config"), fields.section("vision_config")
    _check_window(audio)
    return ThinkerConfig(
        backbone=read_qwen3_moe_stack(fields.section("text_config")),
        deepstack_levels=len(vision.integers("deepstack_visual_indexes")),
        mel_bins=audio.get("num_mel_bins", int),
        vision=_vision(vision),
        media=MediaIds(
            audio=fields.get("audio_token_id", int),
            image=fields.get("image_token_id", int),
            video=fields.get("video_token_id", int),
            audio_start=fields.get("audio_start_token_id", int),
            audio_end=fields.get("audio_end_token_id", int),
            vision_start=fields.get("vision_start_token_id", int),
            vision_end=fields.get("vision_end_token_id", int),
        ),
        positions_per_second=fields.get("position_id_per_seconds", int),
    )


def _check_window(audio: JsonFields) -> None:
    window = audio.get("n_window", int)
    if window != 50:
        # WHY: the number of rows of a whole window, 13, follows from 100 mel frames.
        raise ConfigError(f"{audio.where}: n_window {window} is not served; valid: 50")


def _vision(fields: JsonFields) -> VisionGrid:
    grid = VisionGrid(
        patch_size=fields.get("patch_size", int),
        temporal_patch_size=fields.get("temporal_patch_size", int),
        merge_size=fields.get("spatial_merge_size", int),
    )
    if min(grid.patch_size, grid.temporal_patch_size, grid.merge_size) < 1:
        raise ConfigError(f"{fields.where}: patch and merge sizes must be positive, not {grid}")
    return grid
