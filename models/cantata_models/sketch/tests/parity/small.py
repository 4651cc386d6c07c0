"""Small networks with weights that both implementations can make: drawn by name from one seed."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from cantata_models.sketch.training.networks.autoencoder import AutoencoderSize
from cantata_models.sketch.training.networks.transformer import TransformerSize

GOLDENS = Path(__file__).parents[1] / "goldens" / "diffusers.safetensors"
TRANSFORMER = TransformerSize(
    num_layers=2,
    num_attention_heads=2,
    attention_head_dim=24,
    joint_attention_dim=20,
    in_channels=32,
    axes_dims_rope=(4, 10, 10),
)
AUTOENCODER = AutoencoderSize(base_dim=4, z_dim=8, dim_mult=(1, 2, 2, 4), num_res_blocks=1)
STEPS = 7
TOKENS = 16
TEXT_LENGTHS = (5, 3)


def fill(network: nn.Module) -> None:
    """Draws every tensor around its usual size, in the order of the names."""
    generator = torch.Generator().manual_seed(11)
    state = network.state_dict()
    for name in sorted(state):
        noise = torch.randn(state[name].shape, generator=generator)
        plain = name.endswith(("gamma", "norm_q.weight", "norm_k.weight", "txt_norm.weight"))
        state[name] = (1.0 if plain else 0.0) + 0.2 * noise
    network.load_state_dict(state)


def fill_flat(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Draws 2D kernels `[out, in, h, w]` in the order of the names."""
    generator = torch.Generator().manual_seed(12)
    drawn = {}
    for name in sorted(state):
        noise = torch.randn(state[name].shape, generator=generator)
        drawn[name] = 1 + 0.1 * noise if name.endswith("gamma") else 0.2 * noise
    return drawn


def inputs() -> dict[str, Tensor]:
    """Gives the inputs of both networks."""
    generator = torch.Generator().manual_seed(13)
    longest = max(TEXT_LENGTHS)
    mask = torch.arange(longest) < torch.tensor(TEXT_LENGTHS)[:, None]
    return {
        "noisy": torch.randn(2, TOKENS, TRANSFORMER.in_channels, generator=generator),
        "times": torch.tensor([0.3, 0.85]),
        "text": torch.randn(2, longest, TRANSFORMER.joint_attention_dim, generator=generator),
        "mask": mask,
        "picture": torch.randn(1, 3, 32, 32, generator=generator),
        "latents": torch.randn(1, AUTOENCODER.z_dim, 4, 4, generator=generator),
    }
