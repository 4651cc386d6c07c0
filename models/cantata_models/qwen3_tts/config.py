"""The published config.json and generation_config.json, as frozen dataclasses.

Only the values that serving needs are read. The rest of the files (initializers, training switches)
is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.qwen3_config import Qwen3Stack, read_qwen3_stack
from cantata_layers.sampling_settings import SamplingSettings

MODEL_TYPE = "qwen3_tts"
TOKENIZER_12HZ = "qwen3_tts_tokenizer_12hz"
"""The supported one of the published speech tokenizers; the other has 25 frames per second."""
FRAME_PERIOD_S = 0.08
RESERVED_CODES = 1024
"""The last scores of code 0 are for control codes, of which only the end code may be chosen."""
MIN_FRAMES = 2
"""Minimum number of frames before the end code."""
SMALL_MODEL_SIZE = "0b6"
"""`tts_model_size` of the checkpoints trained without instructions."""


class ModelKind(StrEnum):
    """The task of a checkpoint: `tts_model_type` in its config.json."""

    CUSTOM_VOICE = "custom_voice"
    VOICE_DESIGN = "voice_design"
    BASE = "base"


class Qwen3TtsCodecIds(msgspec.Struct, frozen=True):
    """Control codes, which share the embedding of code 0."""

    pad: int = msgspec.field(name="codec_pad_id")
    bos: int = msgspec.field(name="codec_bos_id")
    eos: int = msgspec.field(name="codec_eos_token_id")
    think: int = msgspec.field(name="codec_think_id")
    nothink: int = msgspec.field(name="codec_nothink_id")
    think_bos: int = msgspec.field(name="codec_think_bos_id")
    think_eos: int = msgspec.field(name="codec_think_eos_id")


class Qwen3TtsTextIds(msgspec.Struct, frozen=True, rename="tts_{}_token_id".format):
    """Special text tokens."""

    pad: int
    bos: int
    eos: int


@dataclass(frozen=True, slots=True)
class Qwen3TtsDefaults:
    """A request's defaults, from generation_config.json."""

    first: SamplingSettings
    """Settings for code 0."""
    residual: SamplingSettings
    """Settings for the other codes of a frame."""
    repetition_penalty: float
    max_new_tokens: int


@dataclass(frozen=True, slots=True)
class Qwen3TtsConfig:
    """The configuration of a checkpoint."""

    kind: ModelKind
    model_size: str
    talker: Qwen3Stack
    predictor: Qwen3Stack
    num_codebooks: int
    text_vocab_size: int
    text_hidden_size: int
    codec: Qwen3TtsCodecIds
    text: Qwen3TtsTextIds
    languages: Mapping[str, int]
    """Language or dialect -> its code."""
    speakers: Mapping[str, int]
    """Voice -> its code."""
    dialects: Mapping[str, str]
    """Voice -> the dialect that it speaks instead of Chinese."""
    speaker_size: int
    """Size of a speaker vector, equal to the width of an input row."""
    generation: Qwen3TtsDefaults

    @property
    def follows_instructions(self) -> bool:
        """Whether the checkpoint was trained on instructions."""
        if self.kind is ModelKind.BASE:
            return False
        return self.kind is ModelKind.VOICE_DESIGN or self.model_size != SMALL_MODEL_SIZE

    @property
    def spoken_languages(self) -> tuple[str, ...]:
        """The languages that a request may name. Dialects come only with their voices."""
        return tuple(name for name in self.languages if "dialect" not in name)


def load_config(folder: Path) -> Qwen3TtsConfig:
    """Read a checkpoint's configuration.

    Raises:
        ConfigError: a file cannot be read, a value is missing or of the wrong type, or the
            checkpoint needs an unsupported feature (another speech tokenizer, scaled positions).
    """
    root = read_json(folder / "config.json")
    root.expect("model_type", MODEL_TYPE)
    root.expect("tokenizer_type", TOKENIZER_12HZ)
    talker = root.section("talker_config")
    predictor = talker.section("code_predictor_config")
    config = Qwen3TtsConfig(
        kind=ModelKind(root.expect("tts_model_type", *(kind.value for kind in ModelKind))),
        model_size=root.get("tts_model_size", str, ""),
        talker=read_qwen3_stack(talker),
        predictor=read_qwen3_stack(predictor),
        num_codebooks=talker.get("num_code_groups", int),
        text_vocab_size=talker.get("text_vocab_size", int),
        text_hidden_size=talker.get("text_hidden_size", int),
        codec=talker.read(Qwen3TtsCodecIds),
        text=root.read(Qwen3TtsTextIds),
        languages=_read_codes(talker, "codec_language_id"),
        speakers=_read_codes(talker, "spk_id"),
        dialects=_read_dialects(talker),
        speaker_size=root.section("speaker_encoder_config").get("enc_dim", int, 1024),
        generation=_read_generation(folder / "generation_config.json"),
    )
    _check_consistent(config, root.where)
    return config


def _read_codes(talker: JsonFields, key: str) -> Mapping[str, int]:
    section = talker.section(key)
    return {name.lower(): section.get(name, int) for name in talker.items(key)}


def _read_dialects(talker: JsonFields) -> Mapping[str, str]:
    section = talker.section("spk_is_dialect")
    values = talker.items("spk_is_dialect")
    return {name.lower(): section.get(name, str) for name, value in values.items() if value}


def _read_generation(path: Path) -> Qwen3TtsDefaults:
    """Read the file, with the reference's fallbacks for missing values."""
    fields = read_json(path) if path.exists() else JsonFields({}, str(path))
    return Qwen3TtsDefaults(
        first=_read_sampling(fields, "", "do_sample"),
        residual=_read_sampling(fields, "subtalker_", "subtalker_dosample"),
        repetition_penalty=fields.get("repetition_penalty", float, 1.05),
        max_new_tokens=fields.get("max_new_tokens", int, 2048),
    )


def _read_sampling(fields: JsonFields, prefix: str, switch: str) -> SamplingSettings:
    sampled = fields.get(switch, bool, True)
    return SamplingSettings(
        temperature=fields.get(f"{prefix}temperature", float, 0.9) if sampled else 0.0,
        top_k=fields.get(f"{prefix}top_k", int, 50),
        top_p=fields.get(f"{prefix}top_p", float, 1.0),
    )


def _check_consistent(config: Qwen3TtsConfig, where: str) -> None:
    spoken = config.talker.vocab_size - RESERVED_CODES
    if spoken != config.predictor.vocab_size:
        raise ConfigError(
            f"{where}: talker_config.vocab_size must be code_predictor_config.vocab_size + "
            f"{RESERVED_CODES}, not {config.talker.vocab_size} and {config.predictor.vocab_size}"
        )
    if not spoken <= config.codec.eos < config.talker.vocab_size:
        raise ConfigError(f"{where}: codec_eos_token_id {config.codec.eos} is no control code")
    if config.kind is ModelKind.CUSTOM_VOICE and not config.speakers:
        raise ConfigError(f"{where}: spk_id names no voice")
    if config.kind is ModelKind.BASE and config.speaker_size != config.talker.hidden_size:
        raise ConfigError(
            f"{where}: speaker_encoder_config.enc_dim {config.speaker_size} is not the talker's "
            f"hidden_size {config.talker.hidden_size}"
        )
    for voice, dialect in config.dialects.items():
        if dialect not in config.languages:
            raise ConfigError(f"{where}: voice {voice!r} speaks unknown dialect {dialect!r}")
