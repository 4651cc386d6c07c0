"""The vision transformer (SigLIP) and the connector: a picture to tokens of the language model.

Source: the publisher's siglip_navit.py, `MLPconnector`, `prepare_vit_images`.

Letters: L patches, P numbers of a patch, E width, D width of the language model.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.row_products import RowLinear
from cantata_layers.qwen_image.grid import Grid
from cantata_models.bagel.config import COLOURS, NORM_EPSILON, VisionConfig


class VisionAttention(nn.Module):
    """Every patch sees every other."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            RowLinear(config.width, config.width) for _ in range(4)
        )
        self._heads = config.heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[L, E] -> [L, E]."""
        q, k, v = (
            projection(x).view(len(x), self._heads, -1).transpose(0, 1)[None]
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        output = functional.scaled_dot_product_attention(q, k, v)[0]
        return torch.as_tensor(self.out_proj(output.transpose(0, 1).flatten(1)))


class VisionMlp(nn.Module):
    """Two products with GELU, by its tanh approximation, between them."""

    def __init__(self, inputs: int, inner: int, outputs: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = RowLinear(inputs, inner), RowLinear(inner, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[L, inputs] -> [L, outputs]."""
        return torch.as_tensor(self.fc2(functional.gelu(self.fc1(x), approximate="tanh")))


class Layer(nn.Module):
    """One layer of the vision transformer."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.self_attn = VisionAttention(config)
        self.mlp = VisionMlp(config.width, config.inner, config.width)
        self.layer_norm1, self.layer_norm2 = (
            nn.LayerNorm(config.width, eps=NORM_EPSILON) for _ in range(2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[L, E] -> [L, E]."""
        x = x + self.self_attn(self.layer_norm1(x))
        return x + torch.as_tensor(self.mlp(self.layer_norm2(x)))


class Vision(nn.Module):
    """Pictures to tokens.

    Args:
        width: D.
        table: rows of the table of positions in the language model's width.
    """

    def __init__(self, config: VisionConfig, width: int, table: int) -> None:
        super().__init__()
        numbers = COLOURS * config.patch**2
        self.patch_embedding = RowLinear(numbers, config.width)
        self.position_embedding = nn.Parameter(torch.empty(config.side**2, config.width))
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.post_layernorm = nn.LayerNorm(config.width, eps=NORM_EPSILON)
        self.connector = VisionMlp(config.width, width, width)
        self.pos_embed = nn.Parameter(torch.empty(table, width))
        self._side = config.side

    def forward(self, patches: torch.Tensor, grid: Grid) -> torch.Tensor:
        """[L, P] patches of one picture, row by row -> [L, D]."""
        places = table_rows(grid, self._side).to(patches.device)
        x = self.patch_embedding(patches) + self.position_embedding[places]
        for layer in self.layers:
            x = layer(x)
        return torch.as_tensor(self.connector(self.post_layernorm(x)) + self.pos_embed[places])


def table_rows(grid: Grid, side: int) -> torch.Tensor:
    """[tokens] int64: the place of each token in a table of side x side."""
    rows = torch.arange(grid.height)[:, None] * side
    return (rows + torch.arange(grid.width)).flatten()


def to_patches(picture: torch.Tensor, patch: int) -> torch.Tensor:
    """[3, H, W] -> [H / patch * W / patch, P]; numbers by row, column and colour."""
    channels, height, width = picture.shape
    cut = picture.reshape(channels, height // patch, patch, width // patch, patch)
    return cut.permute(1, 3, 2, 4, 0).reshape(-1, patch**2 * channels)
