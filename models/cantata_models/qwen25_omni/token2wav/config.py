"""The sections `dit_config` and `bigvgan_config` of a published config.json.

Published files have older names for the transformer's sizes (`dim`, `depth`, `heads`) and leave out
what equals the format's defaults.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cantata.contract.data.errors import ConfigError
from cantata_layers.ecapa_config import EcapaConfig, read_ecapa_config
from cantata_layers.json_fields import JsonFields

DEFAULT_SPEAKER = EcapaConfig(
    mels=80,
    size=128,
    channels=(256, 256, 256, 256, 768),
    kernels=(5, 3, 3, 3, 1),
    dilations=(1, 2, 3, 4, 1),
    attention_channels=64,
    parts=2,
    squeezed_channels=64,
)


@dataclass(frozen=True, slots=True)
class DitConfig:
    """The diffusion transformer."""

    hidden_size: int
    layers: int
    heads: int
    head_dim: int
    ff_mult: int
    code_size: int
    """Width of a code's embedding."""
    codes: int
    """Entries of the codes' embedding."""
    repeats: int
    """Mel frames of one code."""
    mels: int
    speaker_size: int
    """Of the speaker's vector in spk_dict.pt."""
    speaker: EcapaConfig
    """The network that hears the speaker's mel spectrogram."""
    block_size: int
    """Mel frames of one block of attention."""
    look_ahead: tuple[int, ...]
    """Layers that see one block ahead."""
    look_backward: tuple[int, ...]
    """Layers that see one block back."""
    rope_theta: float

    @property
    def block_codes(self) -> int:
        return self.block_size // self.repeats


@dataclass(frozen=True, slots=True)
class VocoderConfig:
    """BigVGAN."""

    mels: int
    channels: int
    """Before the first stage; each stage halves them."""
    rates: tuple[int, ...]
    """By which each stage raises the rate."""
    kernels: tuple[int, ...]
    """Of each stage's transposed convolution."""
    block_kernels: tuple[int, ...]
    """Of each stage's residual blocks."""
    block_dilations: tuple[tuple[int, ...], ...]

    @property
    def hop(self) -> int:
        """Samples of one mel frame."""
        return math.prod(self.rates)


def read_dit_config(fields: JsonFields) -> DitConfig:
    """Read `dit_config`.

    Raises:
        ConfigError: a value is of the wrong type or unusable.
    """
    layers = _size(fields, "num_hidden_layers", "depth", 22)
    config = DitConfig(
        hidden_size=_size(fields, "hidden_size", "dim", 1024),
        layers=layers,
        heads=_size(fields, "num_attention_heads", "heads", 16),
        head_dim=fields.get("head_dim", int, 64),
        ff_mult=fields.get("ff_mult", int, 2),
        code_size=fields.get("emb_dim", int, 512),
        # The embedding has an entry more than the configuration says.
        codes=fields.get("num_embeds", int, 8193) + 1,
        repeats=fields.get("repeats", int, 2),
        mels=fields.get("mel_dim", int, 80),
        speaker_size=fields.get("enc_emb_dim", int, 192),
        speaker=read_ecapa_config(fields, DEFAULT_SPEAKER),
        block_size=fields.get("block_size", int, 24),
        look_ahead=fields.integers("look_ahead_layers", (10,)),
        look_backward=fields.integers("look_backward_layers", (0, 20)),
        rope_theta=_rope_theta(fields),
    )
    if config.repeats < 1 or config.block_size < 1 or config.block_size % config.repeats:
        raise ConfigError(
            f"{fields.where}: block_size {config.block_size} must be a multiple of repeats "
            f"{config.repeats}"
        )
    for key in ("look_ahead_layers", "look_backward_layers"):
        wrong = [layer for layer in fields.integers(key, ()) if not 0 <= layer < layers]
        if wrong:
            raise ConfigError(f"{fields.where}: {key} has {wrong}; the layers are 0..{layers - 1}")
    return config


def read_vocoder_config(fields: JsonFields) -> VocoderConfig:
    """Read `bigvgan_config`.

    Raises:
        ConfigError: a value is of the wrong type, or lists do not fit together.
    """
    config = VocoderConfig(
        mels=fields.get("mel_dim", int, 80),
        channels=fields.get("upsample_initial_channel", int, 1536),
        rates=fields.integers("upsample_rates", (5, 3, 2, 2, 2, 2)),
        kernels=fields.integers("upsample_kernel_sizes", (11, 7, 4, 4, 4, 4)),
        block_kernels=fields.integers("resblock_kernel_sizes", (3, 7, 11)),
        block_dilations=fields.integer_lists("resblock_dilation_sizes", ((1, 3, 5),) * 3),
    )
    stages = zip(config.rates, config.kernels, strict=False)
    odd = [pair for pair in stages if pair[0] < 1 or pair[1] < pair[0] or sum(pair) % 2]
    if len(config.rates) != len(config.kernels) or odd:
        raise ConfigError(
            f"{fields.where}: upsample_kernel_sizes {list(config.kernels)} must exceed "
            f"upsample_rates {list(config.rates)} by even numbers"
        )
    if len(config.block_kernels) != len(config.block_dilations):
        raise ConfigError(
            f"{fields.where}: resblock_kernel_sizes and resblock_dilation_sizes must have the same "
            "length"
        )
    if config.channels % 2 ** len(config.rates):
        raise ConfigError(
            f"{fields.where}: upsample_initial_channel {config.channels} cannot be halved "
            f"{len(config.rates)} times"
        )
    return config


def _size(fields: JsonFields, name: str, older: str, default: int) -> int:
    return fields.get(name, int, fields.get(older, int, default))


def _rope_theta(fields: JsonFields) -> float:
    """From where either version of the format has it."""
    older = fields.get("rope_theta", float, 10_000.0)
    return fields.section("rope_parameters").get("rope_theta", float, older)
