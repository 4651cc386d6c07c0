"""The checkpoint's config.json; loading is strict."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cantata_layers.json_fields import read_json
from cantata_layers.speaker_features import SPEAKER_SIZE
from cantata_models.solo.text.tokens import PHONE_INVENTORY

MODEL_TYPE = "cantata_solo"


class TalkerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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


class TextConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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


class CodecConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The codec: sizes shared by the encoder, the quantizer and the causal decoder."""

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


class SoloVoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One published voice. Its index in the list is its id in the networks."""

    id: str
    name: str
    gender: str
    description: str


VOICES = (
    SoloVoice("clara", "Clara", "female", "A clear, even female voice, American English."),
    SoloVoice("ben", "Ben", "male", "A calm male voice, American English."),
    SoloVoice("ruby", "Ruby", "female", "A warm female voice, American English."),
    SoloVoice("ewan", "Ewan", "male", "A deep male voice with a Scottish accent."),
)


class SoloConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything in config.json."""

    model_type: str = MODEL_TYPE
    talker: TalkerConfig = TalkerConfig()
    text: TextConfig = TextConfig()
    codec: CodecConfig = CodecConfig()
    voices: tuple[SoloVoice, ...] = VOICES
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


def load_config(folder: Path) -> SoloConfig:
    """Read `folder`/config.json. Raises ConfigError: it is missing, a key is unknown or a value is
    wrong."""
    return read_json(folder / "config.json").read(SoloConfig)


def save_config(config: SoloConfig, folder: Path) -> None:
    """Write `folder`/config.json."""
    text = msgspec.json.format(msgspec.json.encode(config), indent=2).decode()
    (folder / "config.json").write_text(text + "\n")
