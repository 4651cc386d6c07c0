"""The configurations of both models, as their files say.

Only the values that serving needs are read. Published files of neither model say how to sample; the
defaults are those of the published programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

import msgspec

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.qwen3_config import Qwen3Stack, read_qwen3_stack
from cantata_layers.sampling_settings import SamplingSettings

FRAME_PERIOD_S = 0.08
"""12.5 frames per second."""
INNER_RATIO = 4
"""Width of a feed-forward network in widths of its stack, where `n_inner` is not given."""


class Activation(StrEnum):
    """The nonlinearity of a feed-forward network."""

    SILU = "silu"
    GELU_NEW = "gelu_new"
    """GELU in its approximation by tanh."""


@dataclass(frozen=True, slots=True)
class Gpt2Stack:
    """A stack of GPT-2 blocks, with rotary positions instead of learned ones."""

    hidden_size: int
    layers: int
    heads: int
    intermediate_size: int
    activation: Activation
    layer_norm_eps: float
    rope_theta: float
    max_positions: int

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.heads


class TokenIds(msgspec.Struct, frozen=True):
    """Special text tokens, as id 0 of a row."""

    im_start: int = msgspec.field(name="im_start_token_id")
    im_end: int = msgspec.field(name="im_end_token_id")
    audio_start: int = msgspec.field(name="audio_start_token_id")
    audio_end: int = msgspec.field(name="audio_end_token_id")
    user_slot: int = msgspec.field(name="audio_user_slot_token_id")
    """Of a row that holds a frame of a recording to imitate."""
    assistant_slot: int = msgspec.field(name="audio_assistant_slot_token_id")
    """Of a row that holds a frame of the speech itself."""


@dataclass(frozen=True, slots=True)
class MossDefaults:
    """A request's defaults."""

    stop: SamplingSettings
    """Of the choice between going on and stopping."""
    audio: SamplingSettings
    """Of every code."""
    repetition_penalty: float
    """Of every codebook, over the codes that it has produced in this request."""
    max_frames: int


STOP_SAMPLING = SamplingSettings(temperature=1.0, top_k=50, top_p=1.0)
"""Of both models; a published program calls it the text level."""


@dataclass(frozen=True, slots=True)
class MossConfig:
    """The part of a checkpoint's configuration that both models have."""

    stop_is_text: ClassVar[bool]
    """The choice between going on and stopping is one between two text tokens, and the chosen one
    is a position of its own in the local transformer."""

    tokens: TokenIds
    vocab_size: int
    """Number of text tokens."""
    num_codebooks: int
    codebook_size: int
    pad_code: int
    """Code of a row without a frame; outside the codebooks."""
    local: Gpt2Stack
    """The local transformer, which completes one frame."""
    generation: MossDefaults

    @property
    def end_code(self) -> int:
        """Stands for code 0 where a request stops: one past the codebook."""
        return self.codebook_size


def read_gpt2_stack(fields: JsonFields, layers: int) -> Gpt2Stack:
    """Read `gpt2_config`. Raises ConfigError: a value is missing or of the wrong type, or the stack
    needs an unsupported feature (learned positions, scaled attention, another activation)."""
    fields.expect("position_embedding_type", "rope", default="absolute")
    for switch, served in (
        ("scale_attn_weights", True),
        ("scale_attn_by_inverse_layer_idx", False),
        ("add_cross_attention", False),
    ):
        fields.expect(switch, served, default=served)
    hidden_size, heads = fields.get("n_embd", int), fields.get("n_head", int)
    if hidden_size % (2 * heads):
        raise ConfigError(f"{fields.where}: n_embd {hidden_size} is no even multiple of n_head")
    return Gpt2Stack(
        hidden_size=hidden_size,
        layers=layers,
        heads=heads,
        intermediate_size=fields.get("n_inner", int, INNER_RATIO * hidden_size),
        activation=Activation(
            fields.expect(
                "activation_function",
                *(one.value for one in Activation),
                default=Activation.GELU_NEW.value,
            )
        ),
        layer_norm_eps=fields.get("layer_norm_epsilon", float, 1e-5),
        rope_theta=fields.get("rope_base", float, 10_000.0),
        max_positions=fields.get("n_positions", int),
    )


def read_codebook_size(root: JsonFields, num_codebooks: int) -> int:
    """Read the number of codes in each codebook. Raises ConfigError: the codebooks differ in size,
    or their number is another."""
    whole = root.get("audio_vocab_size", int)
    sizes = root.integers("audio_codebook_sizes", (whole,) * num_codebooks)
    if len(sizes) != num_codebooks or set(sizes) != {whole}:
        raise ConfigError(
            f"{root.where}: audio_codebook_sizes must be n_vq ({num_codebooks}) times "
            f"audio_vocab_size ({whole}), not {list(sizes)}"
        )
    return whole


def check_consistent(config: MossConfig, hidden_size: int, where: str) -> None:
    """Check the values of both models against each other. Raises ConfigError: two of them do not
    fit."""
    if config.local.hidden_size != hidden_size:
        raise ConfigError(
            f"{where}: the local transformer is {config.local.hidden_size} wide, the backbone "
            f"{hidden_size}; they must be equal"
        )
    if config.pad_code < config.codebook_size:
        raise ConfigError(f"{where}: audio_pad_token_id {config.pad_code} is a code of a codebook")
    ids: Mapping[str, int] = msgspec.structs.asdict(config.tokens)
    for name, index in ids.items():
        if not 0 <= index < config.vocab_size:
            raise ConfigError(
                f"{where}: id {index} of {name} is outside the {config.vocab_size} text tokens"
            )


LOCAL_MODEL_TYPE = "moss_tts_local"
LOCAL_GENERATION = MossDefaults(
    stop=STOP_SAMPLING,
    audio=SamplingSettings(temperature=1.7, top_k=25, top_p=0.8),
    repetition_penalty=1.0,
    max_frames=4096,
)
"""Of the published README and of `generate`."""


@dataclass(frozen=True, slots=True)
class LocalConfig(MossConfig):
    stop_is_text: ClassVar[bool] = False
    backbone: Qwen3Stack


def load_local_config(checkpoint: Path) -> LocalConfig:
    """Read a checkpoint's config.json. Raises ConfigError: the file cannot be read, a value is
    missing or of the wrong type, or the checkpoint needs an unsupported feature."""
    root = read_json(checkpoint / "config.json")
    root.expect("model_type", LOCAL_MODEL_TYPE)
    root.expect("local_text_head_mode", "binary", default="binary")
    language = root.section("qwen3_config" if root.items("qwen3_config") else "language_config")
    backbone, gpt2 = read_qwen3_stack(language), root.section("gpt2_config")
    layers = root.get("local_transformer_layers", int, gpt2.get("n_layer", int))
    num_codebooks = root.get("n_vq", int)
    config = LocalConfig(
        tokens=root.read(TokenIds),
        vocab_size=backbone.vocab_size,
        num_codebooks=num_codebooks,
        codebook_size=read_codebook_size(root, num_codebooks),
        pad_code=root.get("audio_pad_token_id", int),
        local=read_gpt2_stack(gpt2, layers),
        generation=LOCAL_GENERATION,
        backbone=backbone,
    )
    check_consistent(config, config.backbone.hidden_size, root.where)
    return config


NANO_MODEL_TYPE = "moss_tts_nano"
ARCHITECTURE = "global_local_transformer"
NANO_GENERATION = MossDefaults(
    stop=STOP_SAMPLING,
    audio=SamplingSettings(temperature=0.8, top_k=25, top_p=0.95),
    repetition_penalty=1.2,
    max_frames=375,
)
"""Of the published program. The defaults of the model's own methods differ."""


@dataclass(frozen=True, slots=True)
class NanoConfig(MossConfig):
    stop_is_text: ClassVar[bool] = True
    backbone: Gpt2Stack


def load_nano_config(checkpoint: Path) -> NanoConfig:
    """Read a checkpoint's config.json. Raises ConfigError: the file cannot be read, a value is
    missing or of the wrong type, or the checkpoint needs an unsupported feature."""
    root = read_json(checkpoint / "config.json")
    root.expect("model_type", NANO_MODEL_TYPE)
    root.expect("model_architecture", ARCHITECTURE, default=ARCHITECTURE)
    gpt2 = root.section("gpt2_config")
    num_codebooks = root.get("n_vq", int)
    config = NanoConfig(
        tokens=root.read(TokenIds),
        vocab_size=gpt2.get("vocab_size", int),
        num_codebooks=num_codebooks,
        codebook_size=read_codebook_size(root, num_codebooks),
        pad_code=root.get("audio_pad_token_id", int),
        local=read_gpt2_stack(gpt2, root.get("local_transformer_layers", int)),
        generation=NANO_GENERATION,
        backbone=read_gpt2_stack(gpt2, gpt2.get("n_layer", int)),
    )
    check_consistent(config, config.backbone.hidden_size, root.where)
    return config
