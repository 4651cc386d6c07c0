"""The checkpoint's config.json as frozen dataclasses; loading is strict."""

from __future__ import annotations

import dataclasses
import json
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cantata_layers.speaker_features import SPEAKER_SIZE
from cantata_models.solo.text.tokens import PHONE_INVENTORY

MODEL_TYPE = "cantata_solo"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TalkerConfig:
    """The Qwen3-shaped backbone and the parts around it."""

    hidden_size: int = 320
    layers: int = 6
    heads: int = 6
    kv_heads: int = 2
    head_dim: int = 64
    intermediate_size: int = 768
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10_000.0
    max_positions: int = 4096
    """Maximum number of frames in an utterance."""
    temperature: float = 8.0
    """tau in the scores of code 0: -distance^2 / tau. At 8, sampling at temperature 1 takes the
    nearest entry four times out of five."""


@dataclass(frozen=True, slots=True)
class TextConfig:
    """The text track: phone encoders, durations, slot network."""

    phones: int = len(PHONE_INVENTORY)
    kernel: int = 7
    channels: int = 256
    phone_blocks: int = 5
    slot_blocks: int = 4
    duration_channels: int = 128
    duration_blocks: int = 6
    speaker_size: int = SPEAKER_SIZE
    speaker_channels: int = 64


@dataclass(frozen=True, slots=True)
class CodecConfig:
    """The codec: sizes shared by the encoder, the quantiser and the causal decoder."""

    sample_rate: int = 24_000
    """Hz."""
    samples_per_frame: int = 1920
    codebooks: int = 16
    codebook_size: int = 512
    latent_size: int = 64
    mels: int = 80
    encoder_channels: int = 192
    encoder_blocks: int = 3
    frame_channels: int = 384
    """Width of the blocks at 12.5 Hz, in the encoder and the decoder."""
    frame_blocks: int = 2
    frame_kernel: int = 3
    decoder_channels: int = 256
    decoder_blocks: int = 7
    decoder_expansion: int = 2
    """Ratio of inner to outer width in the blocks at 100 Hz."""
    kernel: int = 7
    fft_size: int = 960
    hop: int = 240
    """Samples per hop; eight hops per frame."""


@dataclass(frozen=True, slots=True)
class Voice:
    """One published voice. Its index in the list is its id in the networks."""

    id: str
    name: str
    gender: str
    description: str


VOICES = (
    Voice("clara", "Clara", "female", "A clear, even female voice, American English."),
    Voice("ben", "Ben", "male", "A calm male voice, American English."),
    Voice("ruby", "Ruby", "female", "A warm female voice, American English."),
    Voice("ewan", "Ewan", "male", "A deep male voice with a Scottish accent."),
)


@dataclass(frozen=True, slots=True)
class SoloConfig:
    """Everything in config.json."""

    model_type: str = MODEL_TYPE
    talker: TalkerConfig = field(default_factory=TalkerConfig)
    text: TextConfig = field(default_factory=TextConfig)
    codec: CodecConfig = field(default_factory=CodecConfig)
    voices: tuple[Voice, ...] = VOICES
    phones: tuple[str, ...] = PHONE_INVENTORY

    def __post_init__(self) -> None:
        if self.model_type != MODEL_TYPE:
            raise ValueError(f"model_type must be {MODEL_TYPE!r}, not {self.model_type!r}")
        if self.phones != PHONE_INVENTORY:
            raise ValueError(f"phones must be exactly {' '.join(PHONE_INVENTORY)}")
        if not self.voices:
            raise ValueError("voices must not be empty")
        if self.talker.heads % self.talker.kv_heads:
            raise ValueError("talker.heads must be a multiple of talker.kv_heads")
        if self.codec.samples_per_frame % self.codec.hop:
            raise ValueError("codec.samples_per_frame must be a multiple of codec.hop")


def _parse(kind: type[T], value: object, where: str) -> T:
    """Builds the dataclass `kind` from a JSON object, rejecting unknown keys and wrong values."""
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be an object, not {type(value).__name__}")
    hints = typing.get_type_hints(kind)
    unknown = sorted(set(value) - set(hints))
    if unknown:
        raise ValueError(f"{where}: unknown {', '.join(unknown)}; valid keys: {', '.join(hints)}")
    parsed: dict[str, Any] = {}
    for key, item in value.items():
        parsed[key] = _parse_value(hints[key], item, f"{where}.{key}")
    try:
        return kind(**parsed)
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from None


def _parse_value(hint: Any, value: object, where: str) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _parse(hint, value, where)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} must be a list, not {type(value).__name__}")
        inner = typing.get_args(hint)[0]
        return tuple(_parse_value(inner, v, f"{where}[{i}]") for i, v in enumerate(value))
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise ValueError(f"{where} must be {hint.__name__}, not {type(value).__name__}")
    return value


def parse_config(value: object) -> SoloConfig:
    """Returns the config from a parsed config.json.

    Raises:
        ValueError: a key is unknown (the message lists the valid keys) or a value is wrong.
    """
    return _parse(SoloConfig, value, "config")


def load_config(folder: Path) -> SoloConfig:
    """Reads `folder`/config.json; raises as `parse_config`."""
    return parse_config(json.loads((folder / "config.json").read_text()))


def save_config(config: SoloConfig, folder: Path) -> None:
    """Writes `folder`/config.json."""
    text = json.dumps(dataclasses.asdict(config), indent=2)
    (folder / "config.json").write_text(text + "\n")
