"""The sizes of random checkpoints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Qwen3OmniStackShape:
    """A stack of layers."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int
    """Of an expert, or of the layers where there are none."""
    experts: int = 0
    experts_used: int = 0
    mrope_section: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """An encoder of sound or of pictures."""

    hidden: int
    layers: int
    heads: int
    inner: int


@dataclass(frozen=True, slots=True)
class Qwen3OmniShape:
    """A checkpoint."""

    thinker: Qwen3OmniStackShape
    audio: EncoderShape
    audio_channels: int
    """Of the convolutions in front."""
    vision: EncoderShape
    position_grid: int
    """Learned positions of pictures in each direction."""
    deepstack: tuple[int, ...]
    """Layers of the vision encoder whose output the thinker's first layers take."""
    accept_layer: int
    talker: Qwen3OmniStackShape
    shared_expert: int
    projection: int
    predictor: Qwen3OmniStackShape
    codes: int
    decoder: EncoderShape
    decoder_width: int


SMALL_ROPE = (6, 5, 5)
TINY = Qwen3OmniShape(
    thinker=Qwen3OmniStackShape(64, 4, 4, 2, 32, 32, 4, 2, SMALL_ROPE),
    audio=EncoderShape(32, 2, 2, 64),
    audio_channels=16,
    vision=EncoderShape(32, 3, 2, 64),
    position_grid=8,
    deepstack=(0, 1),
    accept_layer=3,
    talker=Qwen3OmniStackShape(64, 2, 4, 2, 32, 32, 4, 2, SMALL_ROPE),
    shared_expert=64,
    projection=96,
    predictor=Qwen3OmniStackShape(64, 2, 4, 2, 32, 96),
    codes=64,
    decoder=EncoderShape(48, 2, 4, 96),
    decoder_width=64,
)
"""For parity: seconds to make and to run."""
REDUCED = Qwen3OmniShape(
    thinker=Qwen3OmniStackShape(512, 8, 8, 2, 64, 256, 16, 4, (12, 10, 10)),
    audio=EncoderShape(256, 4, 4, 1024),
    audio_channels=96,
    vision=EncoderShape(256, 6, 4, 1024),
    position_grid=48,
    deepstack=(1, 2, 4),
    accept_layer=4,
    talker=Qwen3OmniStackShape(256, 6, 4, 2, 64, 128, 16, 4, (12, 10, 10)),
    shared_expert=256,
    projection=512,
    predictor=Qwen3OmniStackShape(256, 3, 4, 2, 64, 768),
    codes=2048,
    decoder=EncoderShape(256, 4, 4, 768),
    decoder_width=384,
)
"""Narrower and with fewer layers and experts than published, every part still of some weight."""
SIZES = {"tiny": TINY, "reduced": REDUCED}
