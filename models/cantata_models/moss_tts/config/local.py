"""The configuration of MOSS-TTS-Local v1.5."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_models.moss_tts.config.shared import (
    STOP_SAMPLING,
    GenerationDefaults,
    MossConfig,
    SamplingSettings,
    check_consistent,
    read_codebook_size,
    read_gpt2_stack,
    read_model_type,
    read_token_ids,
)

MODEL_TYPE = "moss_tts_local"
GENERATION = GenerationDefaults(
    stop=STOP_SAMPLING,
    audio=SamplingSettings(temperature=1.7, top_k=25, top_p=0.8),
    repetition_penalty=1.0,
    max_frames=4096,
)
"""Of the published README and of `generate`."""


@dataclass(frozen=True, slots=True)
class Qwen3Stack:
    """The backbone; `cantata_layers.qwen3.Qwen3Sizes`."""

    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    rms_norm_eps: float
    rope_theta: float
    max_positions: int


@dataclass(frozen=True, slots=True)
class LocalConfig(MossConfig):
    """The configuration of a checkpoint."""

    stop_is_text: ClassVar[bool] = False
    backbone: Qwen3Stack


def load_local_config(checkpoint: Path) -> LocalConfig:
    """Read a checkpoint's config.json.

    Raises:
        ConfigError: the file cannot be read, a value is missing or of the wrong type, or the
            checkpoint needs an unsupported feature.
    """
    root = read_json(checkpoint / "config.json")
    read_model_type(root, MODEL_TYPE)
    mode = root.get("local_text_head_mode", str, "binary")
    if mode != "binary":
        raise ConfigError(f"{root.where}: local_text_head_mode {mode!r}; valid: 'binary'")
    language = root.section("qwen3_config" if root.items("qwen3_config") else "language_config")
    gpt2 = root.section("gpt2_config")
    layers = root.get("local_transformer_layers", int, gpt2.get("n_layer", int))
    num_codebooks = root.get("n_vq", int)
    config = LocalConfig(
        tokens=read_token_ids(root),
        vocab_size=language.get("vocab_size", int),
        num_codebooks=num_codebooks,
        codebook_size=read_codebook_size(root, num_codebooks),
        pad_code=root.get("audio_pad_token_id", int),
        local=read_gpt2_stack(gpt2, layers),
        generation=GENERATION,
        backbone=_qwen3_stack(language),
    )
    check_consistent(config, config.backbone.hidden_size, root.where)
    return config


def _qwen3_stack(fields: JsonFields) -> Qwen3Stack:
    for switch in ("attention_bias", "use_sliding_window"):
        if fields.get(switch, bool, False):
            raise ConfigError(f"{fields.where}: {switch} is not served; valid: false")
    activation = fields.get("hidden_act", str, "silu")
    if activation != "silu":
        raise ConfigError(f"{fields.where}: hidden_act {activation!r}; valid: 'silu'")
    hidden_size, heads = fields.get("hidden_size", int), fields.get("num_attention_heads", int)
    return Qwen3Stack(
        hidden_size=hidden_size,
        layers=fields.get("num_hidden_layers", int),
        heads=heads,
        kv_heads=fields.get("num_key_value_heads", int),
        head_dim=fields.get("head_dim", int, hidden_size // heads),
        intermediate_size=fields.get("intermediate_size", int),
        rms_norm_eps=fields.get("rms_norm_eps", float, 1e-6),
        rope_theta=_rope_theta(fields),
        max_positions=fields.get("max_position_embeddings", int),
    )


def _rope_theta(fields: JsonFields) -> float:
    """Read the base of the rotary positions, from where either version of the format has it."""
    parameters = fields.section("rope_parameters")
    for place in (parameters, fields.section("rope_scaling")):
        rope_type = place.get("rope_type", str, place.get("type", str, "default"))
        if rope_type != "default":
            raise ConfigError(f"{place.where}: rope_type {rope_type!r}; valid: 'default'")
    if fields.items("rope_parameters"):
        return parameters.get("rope_theta", float)
    return fields.get("rope_theta", float)
