"""The tiny talker's checkpoint: random weights from a seed, in the folder layout of a real one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file

HIDDEN = 64
HEAD_DIM = 32
LAYERS = 2
INTERMEDIATE = 96
TEXT_VOCAB = 40
CODEBOOK_SIZE = 24
NUM_CODEBOOKS = 4
END_CODE = CODEBOOK_SIZE
LATENT_SIZE = 6
"""Of the talker that makes latents from the same weights."""
MAX_POSITIONS = 512


def save_tiny_checkpoint(folder: Path, seed: int = 0) -> None:
    """Write config.json and model.safetensors.

    Args:
        folder: exists.
        seed: of the weights.
    """
    config = {"model_type": "tiny_talker", "num_codebooks": NUM_CODEBOOKS}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    save_file(_weights(seed), folder / "model.safetensors")


def _weights(seed: int) -> dict[str, torch.Tensor]:
    """Weights large enough that hidden states, and so codes, depend on the whole history."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int, scale: float) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * scale

    weights = {
        "text_embedding.weight": normal(TEXT_VOCAB, HIDDEN, scale=1.0),
        "code_embeddings": normal(NUM_CODEBOOKS, CODEBOOK_SIZE + 1, HIDDEN, scale=0.7),
        "norm.weight": torch.ones(HIDDEN),
        "code0_head.weight": normal(CODEBOOK_SIZE + 1, HIDDEN, scale=0.35),
        "local_heads": normal(NUM_CODEBOOKS - 1, CODEBOOK_SIZE, HIDDEN, scale=0.35),
    }
    for layer in range(LAYERS):
        weights.update(
            {f"layers.{layer}.{name}": value for name, value in _layer_weights(normal).items()}
        )
    return weights


def _layer_weights(normal: Callable[..., torch.Tensor]) -> Mapping[str, torch.Tensor]:
    draw = normal
    scale = HIDDEN**-0.5 * 1.5
    return {
        "self_attn.qkv_proj.weight": draw(4 * HEAD_DIM, HIDDEN, scale=scale),
        "self_attn.o_proj.weight": draw(HIDDEN, 2 * HEAD_DIM, scale=scale),
        "self_attn.q_norm.weight": torch.full((HEAD_DIM,), 1.5),
        "self_attn.k_norm.weight": torch.full((HEAD_DIM,), 1.5),
        "mlp.gate_up_proj.weight": draw(2 * INTERMEDIATE, HIDDEN, scale=scale),
        "mlp.down_proj.weight": draw(HIDDEN, INTERMEDIATE, scale=scale),
        "input_layernorm.weight": torch.ones(HIDDEN),
        "post_attention_layernorm.weight": torch.ones(HIDDEN),
    }
