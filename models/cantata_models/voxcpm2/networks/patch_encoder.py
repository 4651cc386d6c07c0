"""The local encoder: a patch of latents as one row.

Letters: R patches, P latents of a patch, C numbers of a latent, H hidden size.
"""

from __future__ import annotations

import torch
from torch import nn

from cantata.contract.model.row_products import RowLinear
from cantata_models.voxcpm2.config import VoxCpm2Config
from cantata_models.voxcpm2.networks.local_transformer import LocalTransformer


class PatchEncoder(nn.Module):
    """A learned token in front of the patch gathers what the row holds."""

    def __init__(self, config: VoxCpm2Config) -> None:
        super().__init__()
        size = config.encoder.hidden_size
        self.special_token = nn.Parameter(torch.empty(1, 1, 1, size))
        self.in_proj = RowLinear(config.latent_dim, size)
        self.encoder = LocalTransformer(config.encoder, positions=1 + config.patch_size)

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        """[R, P, C] -> [R, H]."""
        latents = self.in_proj(patches)
        token = self.special_token[0].expand(len(patches), -1, -1)
        return torch.as_tensor(self.encoder(torch.cat([token, latents], dim=1), slice(1))[:, 0])
