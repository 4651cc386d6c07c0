"""What the configurations of both models have in common.

Only the values that serving needs are read. Published files of neither model say how to sample; the
defaults are those of the published programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import ClassVar

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields
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
        """Size of a head."""
        return self.hidden_size // self.heads


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Special text tokens, as id 0 of a row."""

    im_start: int
    im_end: int
    audio_start: int
    audio_end: int
    user_slot: int
    """Of a row that holds a frame of a recording to imitate."""
    assistant_slot: int
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


def read_model_type(root: JsonFields, wanted: str) -> None:
    """Check a checkpoint's `model_type`.

    Raises:
        ConfigError: it is another one.
    """
    model_type = root.get("model_type", str)
    if model_type != wanted:
        raise ConfigError(f"{root.where}: model_type must be {wanted!r}, not {model_type!r}")


def read_gpt2_stack(fields: JsonFields, layers: int) -> Gpt2Stack:
    """Read `gpt2_config`.

    Raises:
        ConfigError: a value is missing or of the wrong type, or the stack needs an unsupported
            feature (learned positions, scaled attention, another activation).
    """
    positions = fields.get("position_embedding_type", str, "absolute")
    if positions != "rope":
        raise ConfigError(f"{fields.where}: position_embedding_type {positions!r}; valid: 'rope'")
    for switch, served in (
        ("scale_attn_weights", True),
        ("scale_attn_by_inverse_layer_idx", False),
        ("add_cross_attention", False),
    ):
        if fields.get(switch, bool, served) is not served:
            raise ConfigError(f"{fields.where}: {switch} must be {str(served).lower()}")
    hidden_size, heads = fields.get("n_embd", int), fields.get("n_head", int)
    if hidden_size % (2 * heads):
        raise ConfigError(f"{fields.where}: n_embd {hidden_size} is no even multiple of n_head")
    return Gpt2Stack(
        hidden_size=hidden_size,
        layers=layers,
        heads=heads,
        intermediate_size=fields.get("n_inner", int, INNER_RATIO * hidden_size),
        activation=_activation(fields),
        layer_norm_eps=fields.get("layer_norm_epsilon", float, 1e-5),
        rope_theta=fields.get("rope_base", float, 10_000.0),
        max_positions=fields.get("n_positions", int),
    )


def _activation(fields: JsonFields) -> Activation:
    name = fields.get("activation_function", str, Activation.GELU_NEW.value)
    try:
        return Activation(name)
    except ValueError:
        valid = ", ".join(Activation)
        raise ConfigError(f"{fields.where}: activation_function {name!r}; valid: {valid}") from None


def read_token_ids(root: JsonFields) -> TokenIds:
    """Read the ids of the special tokens; raises as `JsonFields.get`."""
    return TokenIds(
        im_start=root.get("im_start_token_id", int),
        im_end=root.get("im_end_token_id", int),
        audio_start=root.get("audio_start_token_id", int),
        audio_end=root.get("audio_end_token_id", int),
        user_slot=root.get("audio_user_slot_token_id", int),
        assistant_slot=root.get("audio_assistant_slot_token_id", int),
    )


def read_codebook_size(root: JsonFields, num_codebooks: int) -> int:
    """Read the number of codes in each codebook.

    Raises:
        ConfigError: the codebooks differ in size, or their number is another.
    """
    whole = root.get("audio_vocab_size", int)
    sizes = root.integers("audio_codebook_sizes", (whole,) * num_codebooks)
    if len(sizes) != num_codebooks or set(sizes) != {whole}:
        raise ConfigError(
            f"{root.where}: audio_codebook_sizes must be n_vq ({num_codebooks}) times "
            f"audio_vocab_size ({whole}), not {list(sizes)}"
        )
    return whole


def check_consistent(config: MossConfig, hidden_size: int, where: str) -> None:
    """Check the values of both models against each other.

    Raises:
        ConfigError: two of them do not fit.
    """
    if config.local.hidden_size != hidden_size:
        raise ConfigError(
            f"{where}: the local transformer is {config.local.hidden_size} wide, the backbone "
            f"{hidden_size}; they must be equal"
        )
    if config.pad_code < config.codebook_size:
        raise ConfigError(f"{where}: audio_pad_token_id {config.pad_code} is a code of a codebook")
    ids: Mapping[str, int] = asdict(config.tokens)
    for name, index in ids.items():
        if not 0 <= index < config.vocab_size:
            raise ConfigError(
                f"{where}: id {index} of {name} is outside the {config.vocab_size} text tokens"
            )
