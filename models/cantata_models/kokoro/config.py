"""What a folder has, in both published forms: config.json with the sizes of the networks and the
vocabulary of phones; and the files of the ONNX form, as the package kokoro-onnx has them, with the
network in one and the styles of all voices in another."""

from __future__ import annotations

import math
import mmap
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.g2p.said_parts import Alphabet
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.misaki.phones import vocabulary

CONFIG_FILE = "config.json"
NETWORKS = (
    "kokoro-v1.0.onnx",
    "kokoro-v1.0.fp16.onnx",
    "kokoro-v1.0.int8.onnx",
    "kokoro-v1.1-zh.onnx",
)
STYLES = ("voices-v1.0.bin", "voices-v1.1-zh.bin")
MAX_PHONES = 510
"""Of a sentence, without the padding."""
STYLE = 128
"""Numbers of half a style."""
_TENSOR_INT32, _TENSOR_INT64 = 6, 7
_WHOLE_SPEED = re.compile(
    rb"\n\x05speed\x12.\n.\x08[%c%c]" % (_TENSOR_INT32, _TENSOR_INT64), re.DOTALL
)
"""`ValueInfoProto { name, type { tensor_type { elem_type } } }` (onnx.proto)."""
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
    """Sizes of the generator, which turns the decoder's frames into sound."""

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


def publish_sizes(phones: Mapping[str, int]) -> KokoroConfig:
    """The sizes of Kokoro-82M, of all versions, with a vocabulary of phones."""
    return KokoroConfig(
        tokens=178,
        hidden=512,
        style=128,
        layers=3,
        kernel=5,
        longest=50,
        bert=BertConfig(embedding=128, hidden=768, heads=12, inner=2048, positions=512, layers=12),
        generator=GeneratorConfig(
            channels=512,
            rates=(10, 6),
            kernels=(20, 12),
            block_kernels=(3, 7, 11),
            block_dilations=((1, 3, 5), (1, 3, 5), (1, 3, 5)),
            size=20,
            hop=5,
        ),
        vocabulary=phones,
    )


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


def load_vocabulary(checkpoint: Path) -> Mapping[str, int]:
    """Read the vocabulary alone: letter -> id of its phone; 0 is the padding.

    Raises:
        ConfigError: the configuration is missing, or the vocabulary cannot be used.
    """
    fields = read_json(checkpoint / CONFIG_FILE)
    return _read_vocabulary(fields, fields.size("n_token"))


def has_onnx(checkpoint: Path) -> bool:
    """Whether a folder is of this form; one that has torch weights too is not."""
    if any(checkpoint.glob("*.pth")):
        return False
    return any(checkpoint.glob("*.onnx")) or any((checkpoint / name).exists() for name in STYLES)


def find_network(checkpoint: Path) -> Path:
    """The network's file: one that is named as published, or else the only one.

    Raises:
        ConfigError: there is none, or more than one.
    """
    found = sorted(checkpoint.glob("*.onnx"))
    chosen = [path for path in found if path.name in NETWORKS] or found
    if len(chosen) != 1:
        names = ", ".join(path.name for path in chosen) or "no *.onnx"
        raise ConfigError(f"{checkpoint}: has {names}; it needs one network, such as {NETWORKS[0]}")
    return chosen[0]


def find_styles(checkpoint: Path) -> Path:
    """The file of styles.

    Raises:
        ConfigError: there is none, or more than one.
    """
    found = [checkpoint / name for name in STYLES if (checkpoint / name).exists()]
    if not found:
        raise ConfigError(f"{checkpoint}: no {STYLES[0]}, the voices' styles")
    if len(found) > 1:
        raise ConfigError(f"{checkpoint}: has {' and '.join(STYLES)}; it needs one")
    return found[0]


def load_alphabet(checkpoint: Path) -> Alphabet:
    """What the network reads: the vocabulary in config.json, or else that of version 1.0.

    Raises:
        ConfigError: the vocabulary cannot be used, or it is of another version and not there.
    """
    if (checkpoint / CONFIG_FILE).exists():
        return Alphabet(load_vocabulary(checkpoint), MAX_PHONES)
    if find_styles(checkpoint).name != STYLES[0]:
        raise ConfigError(f"{checkpoint}: no {CONFIG_FILE}, which has this version's vocabulary")
    return Alphabet(vocabulary(), MAX_PHONES)


def takes_whole_speeds(network: Path) -> bool:
    """Whether a network's speed is a whole number, as in some exports. A file that is no network
    has none."""
    if network.stat().st_size == 0:
        return False
    with (
        network.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return _WHOLE_SPEED.search(content) is not None


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
