"""Shapes of random checkpoints, as their config.json."""

from __future__ import annotations

from typing import Any

FACTORS = 16
"""Of the tiny heads."""


def _config(
    sizes: dict[str, Any], lm: dict[str, Any], codec: dict[str, Any], head_dim: int
) -> dict[str, Any]:
    local = {"kv_channels": head_dim}
    return {
        "architecture": "voxcpm2",
        "lm_config": {
            "bos_token_id": 1,
            "eos_token_id": 2,
            "kv_channels": head_dim,
            "rms_norm_eps": 1e-05,
            "rope_theta": 10000.0,
            "use_mup": False,
            "scale_emb": 12,
            "dim_model_base": 256,
            "scale_depth": 1.4,
            **lm,
        },
        "patch_size": 4,
        "residual_lm_no_rope": True,
        "scalar_quantization_scale": 9,
        "max_length": 8192,
        "device": "cpu",
        "dtype": "float32",
        **sizes,
        "encoder_config": {**local, **sizes["encoder_config"]},
        "dit_config": {**local, **sizes["dit_config"], "cfm_config": {}},
        "audio_vae_config": {
            "encoder_rates": [2, 5, 8, 8],
            "decoder_rates": [8, 6, 5, 2, 2, 2],
            "depthwise": True,
            "sample_rate": 16000,
            "out_sample_rate": 48000,
            "use_noise_block": False,
            "sr_bin_boundaries": [20000, 30000, 40000],
            "cond_type": "scale_bias",
            "cond_dim": 128,
            "cond_out_layer": False,
            "latent_dim": sizes["feat_dim"],
            **codec,
        },
    }


def _factors(least: float, most: float) -> list[float]:
    return [least + (most - least) * index / (FACTORS - 1) for index in range(FACTORS)]


TINY = _config(
    {
        "feat_dim": 16,
        "scalar_quantization_latent_dim": 16,
        "residual_lm_num_layers": 1,
        "encoder_config": {"hidden_dim": 48, "ffn_dim": 96, "num_heads": 2, "num_layers": 1},
        "dit_config": {"hidden_dim": 64, "ffn_dim": 96, "num_heads": 2, "num_layers": 2},
    },
    {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "vocab_size": 400,
        "max_position_embeddings": 2048,
        "rope_scaling": {
            "type": "longrope",
            "short_factor": _factors(1.0, 1.6),
            "long_factor": _factors(1.0, 5.0),
            "original_max_position_embeddings": 2048,
        },
    },
    {"encoder_dim": 8, "decoder_dim": 128},
    head_dim=32,
)
"""As published in kind: short factors, no positions in the residual model, scales by rate."""

TINY_STRETCHED = {
    **TINY,
    "residual_lm_no_rope": False,
    "residual_lm_num_layers": 2,
    "lm_config": {
        **TINY["lm_config"],
        "max_position_embeddings": 4096,
        "rope_scaling": {
            **TINY["lm_config"]["rope_scaling"],
            "original_max_position_embeddings": 1024,
        },
    },
    "audio_vae_config": {**TINY["audio_vae_config"], "sr_bin_boundaries": None},
}
"""What other checkpoints may be: stretched positions in both models, no scales by rate."""

PUBLISHED = _config(
    {
        "feat_dim": 64,
        "scalar_quantization_latent_dim": 512,
        "residual_lm_num_layers": 8,
        "encoder_config": {"hidden_dim": 1024, "ffn_dim": 4096, "num_heads": 16, "num_layers": 12},
        "dit_config": {"hidden_dim": 1024, "ffn_dim": 4096, "num_heads": 16, "num_layers": 12},
        "dtype": "bfloat16",
    },
    {
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "vocab_size": 73448,
        "max_position_embeddings": 32768,
        "rope_scaling": {
            "type": "longrope",
            "short_factor": [1.0] * 64,
            "long_factor": [1.0] * 64,
            "original_max_position_embeddings": 32768,
        },
    },
    {"encoder_dim": 128, "decoder_dim": 2048},
    head_dim=128,
)
"""The size of the published checkpoint (its factors differ)."""
REDUCED = _config(
    {
        "feat_dim": 64,
        "scalar_quantization_latent_dim": 256,
        "residual_lm_num_layers": 2,
        "encoder_config": {"hidden_dim": 256, "ffn_dim": 1024, "num_heads": 4, "num_layers": 4},
        "dit_config": {"hidden_dim": 256, "ffn_dim": 1024, "num_heads": 4, "num_layers": 4},
    },
    {
        "hidden_size": 512,
        "intermediate_size": 1536,
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 400,
        "max_position_embeddings": 8192,
        "rope_scaling": {
            "type": "longrope",
            "short_factor": [1.0] * 32,
            "long_factor": [1.0] * 32,
            "original_max_position_embeddings": 8192,
        },
    },
    {"encoder_dim": 32, "decoder_dim": 512},
    head_dim=64,
)
"""A quarter of the published widths and layers, for a few CPU cores."""
SIZES = {"tiny": TINY, "reduced": REDUCED, "2b": PUBLISHED}
