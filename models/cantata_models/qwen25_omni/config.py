"""The published files, as frozen dataclasses; only the values that serving needs.

Transformers' encoders read theirs. Published files have older names for token2wav's transformer
(`dim`, `depth`, `heads`) and leave out others, whose values are then the published code's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import msgspec

from cantata.contract.data.errors import ConfigError
from cantata_layers.ecapa_config import EcapaConfig
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.omni.thinker_fields import (
    MediaIds,
    ThinkerSampling,
    VisionGrid,
    read_media_ids,
    read_thinker_sampling,
)
from cantata_layers.qwen3_config import Qwen3Stack, read_qwen3_stack

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


class VocoderConfig(msgspec.Struct, frozen=True):
    """BigVGAN: `bigvgan_config`."""

    mels: int = msgspec.field(name="mel_dim", default=80)
    channels: int = msgspec.field(name="upsample_initial_channel", default=1536)
    """Before the first stage; each stage halves them."""
    rates: tuple[int, ...] = msgspec.field(name="upsample_rates", default=(5, 3, 2, 2, 2, 2))
    """By which each stage raises the rate."""
    kernels: tuple[int, ...] = msgspec.field(
        name="upsample_kernel_sizes", default=(11, 7, 4, 4, 4, 4)
    )
    """Of each stage's transposed convolution."""
    block_kernels: tuple[int, ...] = msgspec.field(name="resblock_kernel_sizes", default=(3, 7, 11))
    """Of each stage's residual blocks."""
    block_dilations: tuple[tuple[int, ...], ...] = msgspec.field(
        name="resblock_dilation_sizes", default=((1, 3, 5),) * 3
    )

    def __post_init__(self) -> None:
        stages = zip(self.rates, self.kernels, strict=False)
        odd = [pair for pair in stages if pair[0] < 1 or pair[1] < pair[0] or sum(pair) % 2]
        if len(self.rates) != len(self.kernels) or odd:
            raise ValueError(
                f"upsample_kernel_sizes {list(self.kernels)} must exceed upsample_rates "
                f"{list(self.rates)} by even numbers"
            )
        if len(self.block_kernels) != len(self.block_dilations):
            raise ValueError(
                "resblock_kernel_sizes and resblock_dilation_sizes must have the same length"
            )
        if self.channels % 2 ** len(self.rates):
            raise ValueError(
                f"upsample_initial_channel {self.channels} cannot be halved {len(self.rates)} times"
            )

    @property
    def hop(self) -> int:
        """Samples of one mel frame."""
        return math.prod(self.rates)


def read_dit_config(fields: JsonFields) -> DitConfig:
    """Read `dit_config`. Raises ConfigError: a value is of the wrong type or unusable."""
    layers = _read_size(fields, "num_hidden_layers", "depth", 22)
    config = DitConfig(
        hidden_size=_read_size(fields, "hidden_size", "dim", 1024),
        layers=layers,
        heads=_read_size(fields, "num_attention_heads", "heads", 16),
        head_dim=fields.get("head_dim", int, 64),
        ff_mult=fields.get("ff_mult", int, 2),
        code_size=fields.get("emb_dim", int, 512),
        # The embedding has an entry more than the configuration says.
        codes=fields.get("num_embeds", int, 8193) + 1,
        repeats=fields.get("repeats", int, 2),
        mels=fields.get("mel_dim", int, 80),
        speaker_size=fields.get("enc_emb_dim", int, 192),
        speaker=fields.read(EcapaConfig, DEFAULT_SPEAKER),
        block_size=fields.get("block_size", int, 24),
        look_ahead=fields.integers("look_ahead_layers", (10,)),
        look_backward=fields.integers("look_backward_layers", (0, 20)),
        rope_theta=_read_rope_theta(fields),
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


def _read_size(fields: JsonFields, name: str, older: str, default: int) -> int:
    return fields.get(name, int, fields.get(older, int, default))


def _read_rope_theta(fields: JsonFields) -> float:
    """From where either version of the format has it."""
    older = fields.get("rope_theta", float, 10_000.0)
    return fields.section("rope_parameters").get("rope_theta", float, older)


MODEL_TYPE = "qwen2_5_omni"
FRAME_PERIOD_S = 0.02
SAMPLE_RATE = 24_000
"""Hz. No file says so; it is what the published vocoder was trained for."""
MAX_FRAMES = 4096
"""Of one answer: a default of the reference's `generate`, in no file of a checkpoint."""


class Qwen25OmniCodecIds(msgspec.Struct, frozen=True, rename="tts_codec_{}_token_id".format):
    """Control codes, which share the codes' embedding."""

    pad: int
    """Ends the speech, as `end` does."""
    start: int
    end: int
    mask: int
    """What stands for a row of the prompt in the repetition penalty."""


class Qwen25OmniTextIds(msgspec.Struct, frozen=True, rename="tts_text_{}_token_id".format):
    """Special text tokens; their embeddings are the thinker's."""

    pad: int
    end: int


@dataclass(frozen=True, slots=True)
class Qwen25OmniTalkerConfig:
    stack: Qwen3Stack
    """Sizes of its Qwen2 layers; the fields are those of Qwen3's."""
    embedding_size: int
    """Width of the thinker's rows and of the codes' embedding, before the projection."""
    mrope_section: tuple[int, ...]
    """Rotary frequencies of the time, height and width axes, one section after the other."""
    codec: Qwen25OmniCodecIds
    text: Qwen25OmniTextIds


@dataclass(frozen=True, slots=True)
class Qwen25OmniConfig:
    text_vocab_size: int
    """Of the thinker."""
    talker: Qwen25OmniTalkerConfig
    dit: DitConfig
    vocoder: VocoderConfig

    @property
    def codes(self) -> int:
        """The codes that can be decoded are 0 up to this, exclusive."""
        return self.dit.codes


def read_sections(fields: JsonFields) -> tuple[int, ...]:
    """Rotary frequencies of each axis, from a stack's section. Raises ConfigError: they are
    missing, or do not fit its heads."""
    place = "rope_parameters" if fields.items("rope_parameters") else "rope_scaling"
    sections = fields.section(place).integers("mrope_section")
    half = read_qwen3_stack(fields).head_dim // 2
    if len(sections) != 3 or sum(sections) != half:
        raise ConfigError(
            f"{fields.where}: mrope_section {list(sections)} must be three numbers whose sum is "
            f"half of head_dim, {half}"
        )
    return sections


def load_config(folder: Path) -> Qwen25OmniConfig:
    """Read a checkpoint's configuration. Raises ConfigError: a file cannot be read, a value is
    missing, of the wrong type or inconsistent, or the checkpoint has no talker."""
    root = read_json(folder / "config.json")
    root.expect("model_type", MODEL_TYPE)
    if not root.get("enable_audio_output", bool, True):
        raise ConfigError(f"{root.where}: enable_audio_output is false: the checkpoint is mute")
    text = root.section("thinker_config").section("text_config")
    sound = root.section("token2wav_config")
    config = Qwen25OmniConfig(
        text_vocab_size=text.get("vocab_size", int),
        talker=_read_talker(root.section("talker_config")),
        dit=read_dit_config(sound.section("dit_config")),
        vocoder=sound.section("bigvgan_config").read(VocoderConfig),
    )
    _check_consistent(config, text.get("hidden_size", int), root.where)
    return config


def _read_talker(fields: JsonFields) -> Qwen25OmniTalkerConfig:
    return Qwen25OmniTalkerConfig(
        stack=read_qwen3_stack(fields),
        embedding_size=fields.get("embedding_size", int),
        mrope_section=read_sections(fields),
        codec=fields.read(Qwen25OmniCodecIds),
        text=fields.read(Qwen25OmniTextIds),
    )


def _check_consistent(config: Qwen25OmniConfig, thinker_size: int, where: str) -> None:
    talker = config.talker
    if talker.embedding_size != thinker_size:
        raise ConfigError(
            f"{where}: talker_config.embedding_size {talker.embedding_size} must be the thinker's "
            f"hidden_size {thinker_size}"
        )
    codec = talker.codec
    for name in ("pad", "start", "end", "mask"):
        code = getattr(codec, name)
        if not config.codes <= code < talker.stack.vocab_size:
            raise ConfigError(
                f"{where}: tts_codec_{name}_token_id {code} must be in {config.codes}.."
                f"{talker.stack.vocab_size - 1}: behind the codes, in the talker's vocabulary"
            )
    for name, token in (("pad", talker.text.pad), ("end", talker.text.end)):
        if not 0 <= token < config.text_vocab_size:
            raise ConfigError(
                f"{where}: tts_text_{name}_token_id {token} must be below the thinker's "
                f"vocab_size {config.text_vocab_size}"
            )
    if config.dit.mels != config.vocoder.mels:
        raise ConfigError(
            f"{where}: dit_config.mel_dim {config.dit.mels} and bigvgan_config.mel_dim "
            f"{config.vocoder.mels} must be equal"
        )


THINKER = "thinker."
"""In front of the names of its tensors."""
VISION_DEFAULTS = VisionGrid(patch_size=14, temporal_patch_size=2, merge_size=2)
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
    """Read a checkpoint's config.json and generation_config.json. Raises ConfigError: a file or a
    value is missing, or a value is wrong or not served."""
    root = read_json(folder / "config.json")
    root.expect("model_type", MODEL_TYPE)
    fields = root.section("thinker_config")
    text = fields.section("text_config")
    # WHY: where each window is halved twice by itself, an odd one would add rows.
    fields.section("audio_config").expect("n_window", WINDOW, default=WINDOW)
    path = folder / "generation_config.json"
    return Qwen25OmniThinkerConfig(
        stack=read_qwen3_stack(text),
        mrope_section=read_sections(text),
        vision=fields.section("vision_config").read(VisionGrid, VISION_DEFAULTS),
        media=read_media_ids(fields, "token_index"),
        positions_per_second=fields.get("position_id_per_seconds", int),
        seconds_per_block=fields.get("seconds_per_chunk", int, 2),
        sampling=read_thinker_sampling(
            read_json(path) if path.exists() else JsonFields({}, str(path))
        ),
    )


def speaks(folder: Path) -> bool:
    """Whether a checkpoint has a talker. Raises ConfigError: config.json is missing or damaged."""
    return read_json(folder / "config.json").get("enable_audio_output", bool, True)
