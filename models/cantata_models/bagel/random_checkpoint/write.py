"""Write a whole checkpoint folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from cantata_layers.random_files import write_json
from cantata_layers.random_qwen_tokenizer import write_qwen_tokenizer
from cantata_layers.random_tensors import write_tensors
from cantata_models.bagel.config import AUTOENCODER, LANGUAGE, VISION, WEIGHTS, load_config
from cantata_models.bagel.random_checkpoint.shapes import (
    LATENTS,
    PATCH,
    TINY,
    WORDS,
    BagelShape,
    special_ids,
)
from cantata_models.bagel.random_checkpoint.tensors import model_tensors, vae_tensors
from cantata_models.bagel.vae.encoder_decoder import VaeShape


def write_checkpoint(
    folder: Path, seed: int, shape: BagelShape = TINY, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a checkpoint into `folder` and return it.

    Args:
        folder: made if it is missing.
        seed: of all weights.
        shape: of them.
        dtype: of them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", {"model_type": "bagel"})
    write_json(folder / LANGUAGE, _language(shape))
    write_json(folder / VISION, _vision(shape))
    write_qwen_tokenizer(folder, special_ids(), words=WORDS)
    model = model_tensors(load_config(folder), LATENTS, shape.latent_side)
    write_tensors(folder / f"{WEIGHTS}.safetensors", model, seed, dtype)
    vae = vae_tensors(VaeShape(shape.vae_widths, shape.vae_blocks, LATENTS))
    write_tensors(folder / f"{AUTOENCODER}.safetensors", vae, seed, dtype)
    return folder


def _language(shape: BagelShape) -> dict[str, Any]:
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "hidden_act": "silu",
        "hidden_size": shape.width,
        "intermediate_size": shape.inner,
        "max_position_embeddings": 32768,
        "max_window_layers": shape.layers,
        "model_type": "qwen2",
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.key_heads,
        "rms_norm_eps": 1e-06,
        "rope_theta": 1000000.0,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "vocab_size": shape.vocabulary,
    }


def _vision(shape: BagelShape) -> dict[str, Any]:
    return {
        "hidden_size": shape.vision_width,
        "image_size": shape.vision_side * PATCH,
        "intermediate_size": shape.vision_inner,
        "model_type": "siglip_vision_model",
        "num_attention_heads": shape.vision_heads,
        "num_hidden_layers": shape.vision_layers,
        "patch_size": PATCH,
    }


def write_tiny(folder: Path) -> None:
    """Write a tiny checkpoint."""
    write_checkpoint(folder, seed=1)
