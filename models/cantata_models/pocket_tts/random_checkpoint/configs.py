"""Shapes of random checkpoints, as their YAML file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

WEIGHTS = "hf://kyutai/pocket-tts/languages/english/model.safetensors@0123abc"
HUB = "hf://kyutai/pocket-tts-without-voice-cloning/"


class VoiceFormat(StrEnum):
    """How a published voice is stored."""

    STATE = "state"
    OLD_STATE = "old_state"
    """Its length is that of an empty tensor."""
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class PocketShape:
    """A checkpoint to be written."""

    config: dict[str, Any]
    voices: dict[str, VoiceFormat]

    @property
    def tokens(self) -> int:
        """Of its tokenizer."""
        return int(self.config["flow_lm"]["lookup_table"]["n_bins"])


def _seanet(size: int, filters: int, **other: Any) -> dict[str, Any]:
    return {
        "dimension": size,
        "channels": 1,
        "n_filters": filters,
        "n_residual_layers": 1,
        "ratios": [6, 5, 4],
        "kernel_size": 7,
        "residual_kernel_size": 3,
        "last_kernel_size": 3,
        "dilation_base": 2,
        "pad_mode": "constant",
        "compress": 2,
        **other,
    }


def _windowed(size: int, heads: int, layers: int, window: int, inner: int) -> dict[str, Any]:
    return {
        "d_model": size,
        "num_heads": heads,
        "num_layers": layers,
        "layer_scale": 0.01,
        "context": window,
        "dim_feedforward": inner,
        "input_dimension": size,
        "output_dimensions": [size],
    }


def _config(
    lm: dict[str, Any], table: dict[str, Any], mimi: dict[str, Any], **root: Any
) -> dict[str, Any]:
    size = lm["transformer"]["d_model"]
    return {
        "weights_path": WEIGHTS,
        "weights_path_without_voice_cloning": WEIGHTS,
        **root,
        "flow_lm": {
            "dtype": "float32",
            **lm,
            "lookup_table": {
                "dim": size,
                "tokenizer": "tokenizers",
                "tokenizer_path": f"{HUB}languages/english/tokenizer.json@0123abc",
                **table,
            },
        },
        "mimi": {
            "dtype": "float32",
            "sample_rate": 24_000,
            "channels": 1,
            "frame_rate": 12.5,
            **mimi,
        },
    }


def _transformer(size: int, heads: int, layers: int, scale: int, **other: Any) -> dict[str, Any]:
    return {
        "d_model": size,
        "num_heads": heads,
        "num_layers": layers,
        "hidden_scale": scale,
        "max_period": 10_000,
        **other,
    }


_TABLE = {"n_bins": 400}
_OLD_TABLE = {**_TABLE, "tokenizer": "sentencepiece", "tokenizer_path": f"{HUB}tokenizer.model"}
_REPLACED = {"\u2019": "'", "\u2018": "'"}
_MIMI = {
    "seanet": _seanet(32, 4),
    "transformer": _windowed(32, 2, 2, 20, 64),
    "quantizer": {"dimension": 16, "output_dimension": 32},
}
TINY = PocketShape(
    _config(
        {
            "insert_bos_before_voice": True,
            "flow": {"depth": 2, "dim": 32},
            "transformer": _transformer(64, 2, 2, 2),
        },
        _TABLE,
        {**_MIMI, "inner_dim": 16, "outer_dim": 32},
        replace_characters=_REPLACED,
        default_temperature=0.3,
    ),
    {"alba": VoiceFormat.STATE, "marius": VoiceFormat.OLD_STATE},
)
"""As the usual checkpoints in kind."""
TINY_FIRST = PocketShape(
    _config(
        {"flow": {"depth": 2, "dim": 32}, "transformer": _transformer(64, 2, 2, 2)},
        _OLD_TABLE,
        _MIMI,
        pad_with_spaces_for_short_inputs=True,
        weights_path="hf://kyutai/pocket-tts/tts_b6369a24.safetensors",
    ),
    {"alba": VoiceFormat.ROWS},
)
"""As those of the first releases: other names of files, no mark before a voice."""
TINY_SMALL = PocketShape(
    _config(
        {
            "insert_bos_before_voice": True,
            "z_dim": 24,
            "flow": {"depth": 2, "dim": 32, "type": "drifting"},
            "transformer": _transformer(
                48, 4, 2, 1, attn_dim=128, num_kv_heads=2, dim_feedforward=80
            ),
        },
        {**_OLD_TABLE, "rank": 16},
        {
            **_MIMI,
            "inner_dim": 16,
            "outer_dim": 24,
            "quantizer": {"dimension": 16, "output_dimension": 24},
            "decoder_seanet": _seanet(24, 3 * 2, kernel_size=3),
            "decoder_transformer": _windowed(24, 2, 3, 11, 48),
        },
        remove_semicolons=True,
        replace_characters={**_REPLACED, '"': "", "\u2013": ","},
        model_recommended_frames_after_eos=2,
        default_eos_threshold=-1.0,
    ),
    {"alba": VoiceFormat.STATE},
)
"""As those of 2 to 18 million parameters in kind."""
PUBLISHED = PocketShape(
    _config(
        {
            "insert_bos_before_voice": True,
            "flow": {"depth": 6, "dim": 512},
            "transformer": _transformer(1024, 16, 6, 4),
        },
        {"n_bins": 4000},
        {
            "seanet": _seanet(512, 64),
            "transformer": _windowed(512, 8, 2, 250, 2048),
            "quantizer": {"dimension": 32, "output_dimension": 512},
            "inner_dim": 32,
            "outer_dim": 512,
        },
        replace_characters=_REPLACED,
        default_temperature=0.3,
    ),
    {"alba": VoiceFormat.STATE},
)
"""The size of the published `english`."""
SHAPES = {
    "tiny": TINY,
    "first": TINY_FIRST,
    "small": TINY_SMALL,
    "100m": PUBLISHED,
    "pointwise": replace(
        TINY_SMALL,
        config={
            **TINY_SMALL.config,
            "flow_lm": {
                **TINY_SMALL.config["flow_lm"],
                "flow": {"depth": 2, "dim": 32, "type": "pointwise"},
            },
        },
    ),
}
