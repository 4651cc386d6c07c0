"""What preparing a prompt needs to know of the thinker: token ids and the sizes of its encoders.

The thinker's network is vLLM's own, which reads the rest of its config itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields


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
    """The thinker as far as others depend on it."""

    hidden_size: int
    layers: int
    vocab_size: int
    mel_bins: int
    audio_window: int
    """Half of the mel frames that the audio encoder's convolutions take at once."""
    vision: VisionGrid
    media: MediaIds
    positions_per_second: int
    """Steps on the time axis of a video's rotary positions."""


def read_thinker(fields: JsonFields) -> ThinkerConfig:
    """Read `thinker_config`.

    Raises:
        ConfigError: a value is missing or of the wrong type, or is not served.
    """
    text, audio = fields.section("text_config"), fields.section("audio_config")
    return ThinkerConfig(
        hidden_size=text.get("hidden_size", int),
        layers=text.get("num_hidden_layers", int),
        vocab_size=text.get("vocab_size", int),
        mel_bins=audio.get("num_mel_bins", int),
        audio_window=_window(audio),
        vision=_vision(fields.section("vision_config")),
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


def _window(audio: JsonFields) -> int:
    window = audio.get("n_window", int)
    if window != 50:
        # WHY: the number of rows of a whole window, 13, follows from 100 mel frames.
        raise ConfigError(f"{audio.where}: n_window {window} is not served; valid: 50")
    return window


def _vision(fields: JsonFields) -> VisionGrid:
    grid = VisionGrid(
        patch_size=fields.get("patch_size", int),
        temporal_patch_size=fields.get("temporal_patch_size", int),
        merge_size=fields.get("spatial_merge_size", int),
    )
    if min(grid.patch_size, grid.temporal_patch_size, grid.merge_size) < 1:
        raise ConfigError(f"{fields.where}: patch and merge sizes must be positive, not {grid}")
    return grid
