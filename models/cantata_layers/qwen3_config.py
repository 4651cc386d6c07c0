"""Stacks of Qwen3 decoder layers, dense or with experts, as a published config.json has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cantata.contract.data.errors import ConfigError
from cantata_layers.decoder_sizes import DecoderSizes
from cantata_layers.json_fields import JsonFields


class Qwen3Sizes(DecoderSizes, Protocol):
    """What a talker's own config says about its backbone."""

    @property
    def max_positions(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Qwen3Stack:
    """Its sizes; implements `Qwen3Sizes`."""

    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    rms_norm_eps: float
    rope_theta: float
    max_positions: int


def read_qwen3_stack(fields: JsonFields) -> Qwen3Stack:
    """Read a stack from its section of a config.json. Raises ConfigError: a value is missing or of
    the wrong type, or the layers are of another kind."""
    for switch in ("attention_bias", "use_sliding_window"):
        fields.expect(switch, False, default=False)
    fields.expect("hidden_act", "silu", default="silu")
    hidden_size, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    kv_heads = fields.size("num_key_value_heads")
    check_shared_heads(heads, kv_heads, fields.where)
    return Qwen3Stack(
        hidden_size=hidden_size,
        layers=fields.size("num_hidden_layers"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=fields.size("head_dim", hidden_size // heads),
        intermediate_size=fields.size("intermediate_size"),
        vocab_size=fields.size("vocab_size"),
        rms_norm_eps=fields.get("rms_norm_eps", float, 1e-6),
        rope_theta=_read_rope_theta(fields),
        max_positions=fields.size("max_position_embeddings"),
    )


def check_shared_heads(heads: int, kv_heads: int, where: str) -> None:
    """Check that as many heads of queries share each head of keys and values. Raises ConfigError:
    they cannot."""
    if heads % kv_heads:
        raise ConfigError(f"{where}: {heads} heads cannot share {kv_heads} heads of keys evenly")


def _read_rope_theta(fields: JsonFields) -> float:
    """The base of the rotary positions, from where either version of the format has it.

    Sections of positions are ignored: a talker's position axes hold the same numbers, so sections
    rotate like plain positions.
    """
    parameters = fields.section("rope_parameters")
    for place in (parameters, fields.section("rope_scaling")):
        older = place.get("type", str, "default")
        place.expect("rope_type", "default", default=older)
    if fields.items("rope_parameters"):
        return parameters.get("rope_theta", float)
    return fields.get("rope_theta", float)


@dataclass(frozen=True, slots=True)
class Experts:
    """The sparse half of every layer."""

    count: int
    used: int
    """Experts of one position."""
    size: int
    """Width of one expert."""
    shared_size: int
    """Width of the expert that every position uses; 0: there is none."""
    renormalize: bool
    """Whether the weights of the used experts are scaled to sum to 1."""


@dataclass(frozen=True, slots=True)
class Qwen3MoeStack:
    """Sizes of the layers, whose `intermediate_size` no layer uses, and of their experts."""

    layers: Qwen3Stack
    experts: Experts
    mrope_section: tuple[int, int, int]
    """Interleaved frequencies of a head's half for time, height and width."""


def read_qwen3_moe_stack(fields: JsonFields) -> Qwen3MoeStack:
    """Read a stack whose every layer has experts. Raises ConfigError: a value is missing or of the
    wrong type, or the layers are of another kind."""
    if fields.get("decoder_sparse_step", int, 1) != 1 or fields.integers("mlp_only_layers", ()):
        raise ConfigError(f"{fields.where}: layers without experts are not served")
    layers = read_qwen3_stack(fields)
    experts = Experts(
        # The second name is what transformers 5 saves.
        count=fields.get("num_experts", int, fields.values.get("num_local_experts")),
        used=fields.get("num_experts_per_tok", int),
        size=fields.get("moe_intermediate_size", int),
        shared_size=fields.get("shared_expert_intermediate_size", int, 0),
        renormalize=fields.get("norm_topk_prob", bool, False),
    )
    if not 0 < experts.used <= experts.count:
        raise ConfigError(
            f"{fields.where}: num_experts_per_tok must be 1 to num_experts ({experts.count}), "
            f"not {experts.used}"
        )
    return Qwen3MoeStack(layers, experts, _read_mrope_section(fields, layers.head_dim))


def _read_mrope_section(fields: JsonFields, head_dim: int) -> tuple[int, int, int]:
    key = "rope_parameters" if fields.items("rope_parameters") else "rope_scaling"
    rope = fields.section(key)
    if not (rope.get("interleaved", bool, False) or rope.get("mrope_interleaved", bool, False)):
        raise ConfigError(f"{rope.where}: interleaved must be true")
    sections = rope.integers("mrope_section")
    if len(sections) != 3 or sum(sections) != head_dim // 2:
        raise ConfigError(
            f"{rope.where}: mrope_section must be three numbers with the sum {head_dim // 2} "
            f"(half of head_dim), not {list(sections)}"
        )
    time, height, width = sections
    return time, height, width
