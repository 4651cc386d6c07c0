"""The published config.json, as frozen dataclasses.

Only the values that speech needs are read; `thinker_config` reads the thinker's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.qwen3_config import Qwen3Stack, read_qwen3_stack
from cantata_models.qwen25_omni.token2wav.config import (
    DitConfig,
    VocoderConfig,
    read_dit_config,
    read_vocoder_config,
)

MODEL_TYPE = "qwen2_5_omni"
FRAME_PERIOD_S = 0.02
SAMPLE_RATE = 24_000
"""Hz. No file says so; it is what the published vocoder was trained for."""
MAX_FRAMES = 4096
"""Of one answer: a default of the reference's `generate`, in no file of a checkpoint."""


@dataclass(frozen=True, slots=True)
class Qwen25OmniCodecIds:
    """Control codes, which share the codes' embedding."""

    pad: int
    """Ends the speech, as `end` does."""
    start: int
    end: int
    mask: int
    """What stands for a row of the prompt in the repetition penalty."""


@dataclass(frozen=True, slots=True)
class Qwen25OmniTextIds:
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
    """The configuration of a checkpoint."""

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
    """Rotary frequencies of each axis, from a stack's section.

    Raises:
        ConfigError: they are missing, or do not fit its heads.
    """
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
    """Read a checkpoint's configuration.

    Raises:
        ConfigError: a file cannot be read, a value is missing, of the wrong type or inconsistent,
            or the checkpoint has no talker.
    """
    root = read_json(folder / "config.json")
    model_type = root.get("model_type", str)
    if model_type != MODEL_TYPE:
        raise ConfigError(f"{root.where}: model_type must be {MODEL_TYPE!r}, not {model_type!r}")
    if not root.get("enable_audio_output", bool, True):
        raise ConfigError(f"{root.where}: enable_audio_output is false: the checkpoint is mute")
    text = root.section("thinker_config").section("text_config")
    sound = root.section("token2wav_config")
    config = Qwen25OmniConfig(
        text_vocab_size=text.get("vocab_size", int),
        talker=_talker(root.section("talker_config")),
        dit=read_dit_config(sound.section("dit_config")),
        vocoder=read_vocoder_config(sound.section("bigvgan_config")),
    )
    _check_consistent(config, text.get("hidden_size", int), root.where)
    return config


def _talker(fields: JsonFields) -> Qwen25OmniTalkerConfig:
    codec, text = "tts_codec_{}_token_id", "tts_text_{}_token_id"
    return Qwen25OmniTalkerConfig(
        stack=read_qwen3_stack(fields),
        embedding_size=fields.get("embedding_size", int),
        mrope_section=read_sections(fields),
        codec=Qwen25OmniCodecIds(
            pad=fields.get(codec.format("pad"), int),
            start=fields.get(codec.format("start"), int),
            end=fields.get(codec.format("end"), int),
            mask=fields.get(codec.format("mask"), int),
        ),
        text=Qwen25OmniTextIds(
            pad=fields.get(text.format("pad"), int),
            end=fields.get(text.format("end"), int),
        ),
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
