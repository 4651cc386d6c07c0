"""A stack of Qwen3 decoder layers as a published config.json describes it."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields


@dataclass(frozen=True, slots=True)
class Qwen3Stack:
    """Its sizes; implements `cantata_layers.qwen3.Qwen3Sizes`."""

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
    """Read a stack from its section of a config.json.

    Raises:
        ConfigError: a value is missing or of the wrong type, or the layers are of another kind.
    """
    for switch in ("attention_bias", "use_sliding_window"):
        if fields.get(switch, bool, False):
            raise ConfigError(f"{fields.where}: {switch} is not served; valid: false")
    activation = fields.get("hidden_act", str, "silu")
    if activation != "silu":
        raise ConfigError(f"{fields.where}: hidden_act {activation!r}; valid: 'silu'")
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
        rope_theta=_rope_theta(fields),
        max_positions=fields.size("max_position_embeddings"),
    )


def check_shared_heads(heads: int, kv_heads: int, where: str) -> None:
    """Check that as many heads of queries share each head of keys and values.

    Raises:
        ConfigError: they cannot.
    """
    if heads % kv_heads:
        raise ConfigError(f"{where}: {heads} heads cannot share {kv_heads} heads of keys evenly")


def _rope_theta(fields: JsonFields) -> float:
    """The base of the rotary positions, from where either version of the format has it.

    Sections of positions are ignored: a talker's position axes hold the same numbers, so sections
    rotate like plain positions.
    """
    parameters = fields.section("rope_parameters")
    for place in (parameters, fields.section("rope_scaling")):
        rope_type = place.get("rope_type", str, place.get("type", str, "default"))
        if rope_type != "default":
            raise ConfigError(f"{place.where}: rope_type {rope_type!r}; valid: 'default'")
    if fields.items("rope_parameters"):
        return parameters.get("rope_theta", float)
    return fields.get("rope_theta", float)
