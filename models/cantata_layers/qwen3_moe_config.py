"""A stack of Qwen3 layers with experts as a published config.json describes it."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields
from cantata_layers.qwen3_config import Qwen3Stack, read_qwen3_stack


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
    """Read a stack whose every layer has experts.

    Raises:
        ConfigError: a value is missing or of the wrong type, or the layers are of another kind.
    """
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
    return Qwen3MoeStack(layers, experts, _mrope_section(fields, layers.head_dim))


def _mrope_section(fields: JsonFields, head_dim: int) -> tuple[int, int, int]:
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
