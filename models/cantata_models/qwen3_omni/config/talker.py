"""The talker's part of config.json, and its sampling defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields
from cantata_layers.qwen3_config import Qwen3Stack, read_qwen3_stack
from cantata_layers.qwen3_moe_config import Qwen3MoeStack, read_qwen3_moe_stack
from cantata_layers.sampling_settings import SamplingSettings

RESERVED_CODES = 1024
"""The last scores of code 0 are for control codes, of which only the end code may be chosen."""
MAX_FRAMES = 4096


@dataclass(frozen=True, slots=True)
class Qwen3OmniCodecIds:
    """Control codes, which share the embedding of code 0."""

    pad: int
    bos: int
    eos: int
    nothink: int
    think_bos: int
    think_eos: int


@dataclass(frozen=True, slots=True)
class Qwen3OmniTalkerConfig:
    """The talker and its code predictor."""

    backbone: Qwen3MoeStack
    predictor: Qwen3Stack
    num_codebooks: int
    thinker_hidden_size: int
    """Width of a token's embedding and of a media row."""
    accept_layer: int
    """Layers of the thinker behind which a media row is taken."""
    codec: Qwen3OmniCodecIds
    speakers: Mapping[str, int]
    """Name in lower case -> its code; the first is the default."""

    @property
    def projection_size(self) -> int:
        """Inner width of the projections."""
        return self.backbone.layers.intermediate_size


@dataclass(frozen=True, slots=True)
class TalkerSampling:
    """A request's defaults."""

    first: SamplingSettings
    """Of code 0."""
    residual: SamplingSettings
    """Of the other codes of a frame."""
    repetition_penalty: float
    """Of code 0."""
    max_frames: int


def read_talker(fields: JsonFields) -> Qwen3OmniTalkerConfig:
    """Read `talker_config`.

    Raises:
        ConfigError: a value is missing or of the wrong type, or values contradict each other.
    """
    config = Qwen3OmniTalkerConfig(
        backbone=read_qwen3_moe_stack(fields.section("text_config")),
        predictor=read_qwen3_stack(fields.section("code_predictor_config")),
        num_codebooks=fields.get("num_code_groups", int),
        thinker_hidden_size=fields.get("thinker_hidden_size", int),
        accept_layer=fields.get("accept_hidden_layer", int),
        codec=Qwen3OmniCodecIds(
            pad=fields.get("codec_pad_id", int),
            bos=fields.get("codec_bos_id", int),
            eos=fields.get("codec_eos_token_id", int),
            nothink=fields.get("codec_nothink_id", int),
            think_bos=fields.get("codec_think_bos_id", int),
            think_eos=fields.get("codec_think_eos_id", int),
        ),
        speakers=_speakers(fields),
    )
    _check(config, fields)
    return config


def read_talker_sampling(fields: JsonFields) -> TalkerSampling:
    """Read `talker_*` of generation_config.json, with the reference's values where they lack.

    The reference does not let them choose how the code predictor samples.

    Raises:
        ConfigError: a value is of the wrong type.
    """
    sampled = fields.get("talker_do_sample", bool, True)
    return TalkerSampling(
        first=SamplingSettings(
            temperature=fields.get("talker_temperature", float, 0.9) if sampled else 0.0,
            top_k=fields.get("talker_top_k", int, 50),
            top_p=fields.get("talker_top_p", float, 1.0),
        ),
        residual=SamplingSettings(temperature=1.0 if sampled else 0.0, top_k=50, top_p=0.8),
        repetition_penalty=fields.get("talker_repetition_penalty", float, 1.05),
        max_frames=fields.get("talker_max_new_tokens", int, MAX_FRAMES),
    )


def _speakers(fields: JsonFields) -> Mapping[str, int]:
    section = fields.section("speaker_id")
    return {name.lower(): section.get(name, int) for name in fields.items("speaker_id")}


def _check(config: Qwen3OmniTalkerConfig, fields: JsonFields) -> None:
    layers, predictor = config.backbone.layers, config.predictor
    spoken = layers.vocab_size - RESERVED_CODES
    if spoken < predictor.vocab_size:
        raise ConfigError(
            f"{fields.where}: text_config.vocab_size must be code_predictor_config.vocab_size + "
            f"{RESERVED_CODES} at least, not {layers.vocab_size} and {predictor.vocab_size}"
        )
    if not spoken <= config.codec.eos < layers.vocab_size:
        eos = config.codec.eos
        raise ConfigError(f"{fields.where}: codec_eos_token_id {eos} is no control code")
    if predictor.hidden_size != layers.hidden_size:
        raise ConfigError(
            f"{fields.where}: code_predictor_config.hidden_size {predictor.hidden_size} is not "
            f"text_config.hidden_size {layers.hidden_size}"
        )
    groups = fields.section("code_predictor_config").get("num_code_groups", int)
    if groups != config.num_codebooks or groups < 2:
        raise ConfigError(
            f"{fields.where}: num_code_groups {config.num_codebooks} must be at least 2, and that "
            f"of code_predictor_config, {groups}"
        )
    if not config.speakers:
        raise ConfigError(f"{fields.where}: speaker_id names no voice")
