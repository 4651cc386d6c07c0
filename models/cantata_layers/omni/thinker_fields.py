"""What the config files of omni models say alike: tokens of media, patches, sampling of text."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from cantata_layers.json_fields import JsonFields, Size
from cantata_layers.sampling_settings import SamplingSettings


@dataclass(frozen=True, slots=True)
class MediaIds:
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


class VisionGrid(msgspec.Struct, frozen=True):
    """How pictures become patches, and patches rows: `vision_config`."""

    patch_size: Size
    """Pixels."""
    temporal_patch_size: Size
    """Frames."""
    merge_size: Size = msgspec.field(name="spatial_merge_size")
    """Patches of a row, in each direction."""


@dataclass(frozen=True, slots=True)
class ThinkerSampling:
    """How an answer is sampled by default."""

    settings: SamplingSettings
    repetition_penalty: float


def read_media_ids(fields: JsonFields, repeated: str) -> MediaIds:
    """Read the tokens from `thinker_config`.

    Args:
        repeated: how the names of the repeated tokens end.

    Raises:
        ConfigError: a value is missing or of the wrong type.
    """
    return MediaIds(
        audio=fields.get(f"audio_{repeated}", int),
        image=fields.get(f"image_{repeated}", int),
        video=fields.get(f"video_{repeated}", int),
        audio_start=fields.get("audio_start_token_id", int),
        audio_end=fields.get("audio_end_token_id", int),
        vision_start=fields.get("vision_start_token_id", int),
        vision_end=fields.get("vision_end_token_id", int),
    )


def read_thinker_sampling(fields: JsonFields) -> ThinkerSampling:
    """Read generation_config.json. Raises ConfigError: a value is of the wrong type."""
    sampled = fields.get("do_sample", bool, False)
    settings = SamplingSettings(
        temperature=fields.get("temperature", float, 1.0) if sampled else 0.0,
        top_k=fields.get("top_k", int, 50),
        top_p=fields.get("top_p", float, 1.0),
    )
    return ThinkerSampling(settings, fields.get("repetition_penalty", float, 1.0))
