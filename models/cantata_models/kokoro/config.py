"""Reads config.json as published: sizes of the networks, and the vocabulary of phones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json

CONFIG_FILE = "config.json"
SAMPLE_RATE = 24_000
PITCHES_PER_FRAME = 2
"""Values of pitch and energy for each frame of the durations."""


@dataclass(frozen=True, slots=True)
class BertConfig:
    """PL-BERT, an ALBERT: one layer, applied several times."""

    embedding: int
    hidden: int
    heads: int
    inner: int
    positions: int
    """Most tokens, with the padding at both ends."""
    layers: int


@dataclass(frozen=True, slots=True)
class GeneratorConfig:
    """From frames of the decoder to sound."""

    channels: int
    """Of its input; halved by each upsampling."""
    rates: tuple[int, ...]
    kernels: tuple[int, ...]
    """Of each upsampling."""
    block_kernels: tuple[int, ...]
    block_dilations: tuple[tuple[int, ...], ...]
    """Of the residual blocks behind each upsampling, whose mean is taken."""
    size: int
    """Samples of one spectrum."""
    hop: int
    """Samples from one spectrum to the next."""

    @property
    def spectra_per_pitch(self) -> int:
        """Spectra for each value of the pitch."""
        return math.prod(self.rates)

    @property
    def samples_per_pitch(self) -> int:
        """Samples for each value of the pitch."""
        return self.spectra_per_pitch * self.hop


@dataclass(frozen=True, slots=True)
class Alphabet:
    """What the networks read."""

    vocabulary: Mapping[str, int]
    """Letter -> id of its phone; 0 is the padding."""
    max_phones: int
    """Most phones of a sentence, without the padding."""


@dataclass(frozen=True, slots=True)
class KokoroConfig:
    """One checkpoint's sizes."""

    tokens: int
    hidden: int
    style: int
    """Half a voice's style: one half is for the sound, the other for the prosody."""
    layers: int
    """Of both text encoders."""
    kernel: int
    """Of the text encoder's convolutions."""
    longest: int
    """Frames that one phone can have at speed 1."""
    bert: BertConfig
    generator: GeneratorConfig
    vocabulary: Mapping[str, int]
    """Letter -> id of its phone; 0 is the padding."""

    @property
    def max_phones(self) -> int:
        """Most phones of a sentence, without the padding."""
        return self.bert.positions - 2

    @property
    def alphabet(self) -> Alphabet:
        """What the networks read."""
        return Alphabet(self.vocabulary, self.max_phones)

    @property
    def samples_per_frame(self) -> int:
        """Samples for each frame of the durations; 25 ms as published."""
        return PITCHES_PER_FRAME * self.generator.samples_per_pitch


def load_config(checkpoint: Path) -> KokoroConfig:
    """Read a checkpoint's configuration.

    Raises:
        ConfigError: it is missing, or a value cannot be served; names the key.
    """
    fields = read_json(checkpoint / CONFIG_FILE)
    tokens, kernel = fields.size("n_token"), fields.size("text_encoder_kernel_size")
    if kernel % 2 == 0:
        raise ConfigError(f"{fields.where}: text_encoder_kernel_size must be odd, not {kernel}")
    return KokoroConfig(
        tokens=tokens,
        hidden=_even(fields, "hidden_dim"),
        style=fields.size("style_dim"),
        layers=fields.size("n_layer"),
        kernel=kernel,
        longest=fields.size("max_dur"),
        bert=_read_bert(fields.section("plbert")),
        generator=_read_generator(fields.section("istftnet")),
        vocabulary=_read_vocabulary(fields, tokens),
    )


def _read_bert(fields: JsonFields) -> BertConfig:
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    if hidden % heads:
        raise ConfigError(
            f"{fields.where}: hidden_size must be a multiple of num_attention_heads, "
            f"not {hidden} of {heads}"
        )
    positions = fields.size("max_position_embeddings")
    if positions < 3:
        raise ConfigError(
            f"{fields.where}: max_position_embeddings must be at least 3, not {positions}"
        )
    return BertConfig(
        embedding=fields.size("embedding_size", 128),
        hidden=hidden,
        heads=heads,
        inner=fields.size("intermediate_size"),
        positions=positions,
        layers=fields.size("num_hidden_layers"),
    )


def _read_generator(fields: JsonFields) -> GeneratorConfig:
    config = GeneratorConfig(
        channels=fields.size("upsample_initial_channel"),
        rates=fields.integers("upsample_rates"),
        kernels=fields.integers("upsample_kernel_sizes"),
        block_kernels=fields.integers("resblock_kernel_sizes"),
        block_dilations=fields.integer_lists("resblock_dilation_sizes", ()),
        size=_even(fields, "gen_istft_n_fft"),
        hop=fields.size("gen_istft_hop_size"),
    )
    problem = _find_problem(config)
    if problem:
        raise ConfigError(f"{fields.where}: {problem}")
    return config


def _find_problem(config: GeneratorConfig) -> str | None:
    """Why no generator can be made of these numbers."""
    steps = list(zip(config.rates, config.kernels, strict=False))
    if not steps or len(config.rates) != len(config.kernels):
        return "upsample_rates and upsample_kernel_sizes must have the same length, at least 1"
    if any(rate < 1 or kernel < rate or (kernel - rate) % 2 for rate, kernel in steps):
        return "upsample_kernel_sizes must exceed upsample_rates by even numbers"
    if not config.block_kernels or len(config.block_kernels) != len(config.block_dilations):
        return "resblock_kernel_sizes and resblock_dilation_sizes must have the same length"
    if any(kernel < 1 or kernel % 2 == 0 for kernel in config.block_kernels):
        return "resblock_kernel_sizes must be odd"
    if any(len(d) != 3 or min(d) < 1 for d in config.block_dilations):
        return "resblock_dilation_sizes must be lists of three numbers of at least 1"
    if config.channels % 2 ** len(steps):
        return f"upsample_initial_channel must be a multiple of {2 ** len(steps)}"
    if config.hop > config.size // 2:
        return "gen_istft_hop_size must be at most half of gen_istft_n_fft"
    return None


def _read_vocabulary(fields: JsonFields, tokens: int) -> Mapping[str, int]:
    letters = fields.items("vocab")
    for letter, number in letters.items():
        if type(number) is not int or not 0 < number < tokens:
            raise ConfigError(
                f"{fields.where}: vocab: {letter!r} must have an id of 1 to {tokens - 1}, "
                f"not {number!r}"
            )
    if not letters:
        raise ConfigError(f"{fields.where}: vocab is missing")
    return letters


def _even(fields: JsonFields, key: str) -> int:
    value = fields.size(key)
    if value % 2:
        raise ConfigError(f"{fields.where}: {key} must be even, not {value}")
    return value
