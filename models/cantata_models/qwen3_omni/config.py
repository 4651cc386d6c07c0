"""The published files: Instruct with speech, Thinking and Captioner without.

Only the values that serving needs are read; transformers' encoders read theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.omni.thinker_fields import (
    MediaIds,
    ThinkerSampling,
    VisionGrid,
    read_media_ids,
    read_thinker_sampling,
)
from cantata_layers.qwen3_config import (
    Qwen3MoeStack,
    Qwen3Stack,
    read_qwen3_moe_stack,
    read_qwen3_stack,
)
from cantata_layers.sampling_settings import SamplingSettings


@dataclass(frozen=True, slots=True)
class Qwen3OmniThinkerConfig:
    """The thinker. Its encoders are transformers' own, which read the rest of theirs."""

    backbone: Qwen3MoeStack
    deepstack_levels: int
    """First layers that add features of pictures."""
    mel_bins: int
    vision: VisionGrid
    media: MediaIds
    positions_per_second: int
    """Steps on the time axis of a video's rotary positions."""


def read_thinker(fields: JsonFields) -> Qwen3OmniThinkerConfig:
    """Read `thinker_config`.

    Raises:
        ConfigError: a value is missing or of the wrong type, or is not served.
    """
    audio, vision = fields.section("audio_config"), fields.section("vision_config")
    # WHY: the number of rows of a whole window, 13, follows from 100 mel frames.
    audio.expect("n_window", 50)
    return Qwen3OmniThinkerConfig(
        backbone=read_qwen3_moe_stack(fields.section("text_config")),
        deepstack_levels=len(vision.integers("deepstack_visual_indexes")),
        mel_bins=audio.get("num_mel_bins", int),
        vision=vision.read(VisionGrid),
        media=read_media_ids(fields, "token_id"),
        positions_per_second=fields.get("position_id_per_seconds", int),
    )


RESERVED_CODES = 1024
"""The last scores of code 0 are for control codes, of which only the end code may be chosen."""
MAX_FRAMES = 4096


class Qwen3OmniCodecIds(msgspec.Struct, frozen=True):
    """Control codes, which share the embedding of code 0."""

    pad: int = msgspec.field(name="codec_pad_id")
    bos: int = msgspec.field(name="codec_bos_id")
    eos: int = msgspec.field(name="codec_eos_token_id")
    nothink: int = msgspec.field(name="codec_nothink_id")
    think_bos: int = msgspec.field(name="codec_think_bos_id")
    think_eos: int = msgspec.field(name="codec_think_eos_id")


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
        codec=fields.read(Qwen3OmniCodecIds),
        speakers=_read_speakers(fields),
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


def _read_speakers(fields: JsonFields) -> Mapping[str, int]:
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


SAMPLE_RATE = 24_000
FRAMES_PER_SECOND = 12.5


class Code2WavConfig(msgspec.Struct, frozen=True):
    """Sizes; implements `cantata_layers.sliding_transformer.SlidingSizes`."""

    codebooks: int = msgspec.field(name="num_quantizers")
    codebook_size: int
    hidden_size: int
    layers: int = msgspec.field(name="num_hidden_layers")
    heads: int = msgspec.field(name="num_attention_heads")
    kv_heads: int = msgspec.field(name="num_key_value_heads")
    head_dim: int
    intermediate_size: int
    window: int = msgspec.field(name="sliding_window")
    rope_theta: float
    rms_norm_eps: float
    upsampling_ratios: tuple[int, ...]
    """Rates of the stages before the wave stages."""
    decoder_dim: int
    """Width before the first wave stage; each halves it."""
    upsample_rates: tuple[int, ...]
    """Rates of the wave stages."""

    def __post_init__(self) -> None:
        output = self.samples_per_frame * FRAMES_PER_SECOND
        if output != SAMPLE_RATE:
            raise ValueError(
                f"upsample_rates and upsampling_ratios make {output:g} samples a second, not "
                f"{SAMPLE_RATE}"
            )

    @property
    def samples_per_frame(self) -> int:
        """At `SAMPLE_RATE`."""
        return math.prod((*self.upsampling_ratios, *self.upsample_rates))


def read_code2wav(fields: JsonFields) -> Code2WavConfig:
    """Read `code2wav_config`.

    Raises:
        ConfigError: a value is missing, of the wrong type or not served.
    """
    fields.expect("attention_bias", False, default=False)
    fields.expect("hidden_act", "silu", default="silu")
    usual = {"head_dim": fields.size("hidden_size") // fields.size("num_attention_heads")}
    # Newer files have the base of the rotary positions in a section.
    values = {**usual, **fields.values, **fields.items("rope_parameters")}
    return JsonFields(values, fields.where).read(Code2WavConfig)


MODEL_TYPE = "qwen3_omni_moe"
THINKER, TALKER, CODE2WAV = "thinker.", "talker.", "code2wav."
"""In front of the names of each part's tensors."""
EMBEDDINGS = f"{THINKER}model.embed_tokens.weight"


class Qwen3OmniTextIds(msgspec.Struct, frozen=True, rename="{}_token_id".format):
    """Special tokens of the dialogue and of speech."""

    im_start: int
    im_end: int
    system: int
    """The role, as the next two."""
    user: int
    assistant: int
    tts_pad: int
    tts_bos: int
    tts_eos: int

    @property
    def roles(self) -> Mapping[str, int]:
        """By name."""
        return {"system": self.system, "user": self.user, "assistant": self.assistant}


@dataclass(frozen=True, slots=True)
class SpeechConfig:
    """The parts that speak."""

    talker: Qwen3OmniTalkerConfig
    sampling: TalkerSampling
    code2wav: Code2WavConfig


@dataclass(frozen=True, slots=True)
class OmniConfig:
    thinker: Qwen3OmniThinkerConfig
    text: Qwen3OmniTextIds
    sampling: ThinkerSampling
    speech: SpeechConfig | None
    """None: the checkpoint only writes."""


def load_config(folder: Path) -> OmniConfig:
    """Read a checkpoint's config.json and generation_config.json.

    Raises:
        ConfigError: a file or a value is missing, or a value is wrong or not served.
    """
    root = read_json(folder / "config.json")
    root.expect("model_type", MODEL_TYPE)
    path = folder / "generation_config.json"
    generation = read_json(path) if path.exists() else JsonFields({}, str(path))
    thinker = read_thinker(root.section("thinker_config"))
    return OmniConfig(
        thinker=thinker,
        text=root.read(Qwen3OmniTextIds),
        sampling=read_thinker_sampling(generation),
        speech=_read_speech(root, generation, thinker),
    )


def load_speech_config(folder: Path) -> tuple[OmniConfig, SpeechConfig]:
    """The same for a stage that only a speaking checkpoint has.

    Raises:
        ConfigError: as `load_config`, or the checkpoint has no talker.
    """
    config = load_config(folder)
    if config.speech is None:
        raise ConfigError(f"{folder}: enable_audio_output is false, so there is no talker")
    return config, config.speech


def _read_speech(
    root: JsonFields, generation: JsonFields, thinker: Qwen3OmniThinkerConfig
) -> SpeechConfig | None:
    if not root.get("enable_audio_output", bool, True):
        return None
    speech = SpeechConfig(
        talker=read_talker(root.section("talker_config")),
        sampling=read_talker_sampling(generation),
        code2wav=read_code2wav(root.section("code2wav_config")),
    )
    _check_consistent(speech, thinker, root.where)
    return speech


def _check_consistent(speech: SpeechConfig, thinker: Qwen3OmniThinkerConfig, where: str) -> None:
    talker, decoder = speech.talker, speech.code2wav
    if talker.thinker_hidden_size != thinker.backbone.layers.hidden_size:
        raise ConfigError(
            f"{where}: talker_config.thinker_hidden_size {talker.thinker_hidden_size} is not the "
            f"thinker's hidden_size {thinker.backbone.layers.hidden_size}"
        )
    layers = thinker.backbone.layers.layers
    if not 0 <= talker.accept_layer <= layers:
        raise ConfigError(
            f"{where}: accept_hidden_layer must be 0 to {layers}, not {talker.accept_layer}"
        )
    theirs = (decoder.codebooks, decoder.codebook_size)
    if (talker.num_codebooks, talker.predictor.vocab_size) != theirs:
        raise ConfigError(
            f"{where}: the talker makes frames of {talker.num_codebooks} codes below "
            f"{talker.predictor.vocab_size}, code2wav takes {theirs[0]} below {theirs[1]}"
        )
