"""Building blocks whose float32 result for a row, on a CPU, does not depend on the other rows;
codes to latents.

`packed_product` explains how the matrix products achieve this. LayerNorm, GELU, exp, sin, cos and
irfft are already exact per row. SiLU is not: its vector and scalar paths differ by a bit."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from cantata_models.solo.networks.packed_product import PackedProduct


def to_latents(codebooks: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """Sums each frame's entries, one per codebook, in the codebooks' order.

    Args:
        codebooks: [Q, V, Z] float.
        codes: [..., Q] int64.

    Returns:
        [..., Z].
    """
    books, size, width = codebooks.shape
    entries = codes + size * torch.arange(books, device=codes.device)
    table = codebooks.reshape(books * size, width)
    total = functional.embedding_bag(entries.reshape(-1, books), table, mode="sum")
    return total.view(*codes.shape[:-1], width)


def in_training(input: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether gradients or bfloat16 are in use, so that exactness does not matter."""
    wants_gradient = torch.is_grad_enabled() and (input.requires_grad or weight.requires_grad)
    return wants_gradient or torch.is_autocast_enabled(input.device.type)


class TrainableRowLinear(nn.Linear):
    """A linear layer, exact per row in inference. [..., in_features] -> [..., out_features]."""

    _packed: PackedProduct | None = None

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if in_training(input, self.weight) or input.device.type != "cpu":
            return super().forward(input)
        if self._packed is None or not self._packed.is_for(self.weight):
            self._packed = PackedProduct(self.weight, self.bias)
        rows = self._packed(input.reshape(-1, self.in_features))
        return rows.view(*input.shape[:-1], self.out_features)


class DepthwiseConv(nn.Module):
    """An unpadded depthwise convolution over positions: [B, L + K - 1, C] -> [B, L, C].

    Inference sums shifted products in a fixed order, which is exact per element. Training uses
    torch's convolution.
    """

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.weight = nn.Parameter(torch.empty(kernel, channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        nn.init.trunc_normal_(self.weight, std=(1.0 / kernel) ** 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if in_training(x, self.weight):
            weight = self.weight.t().unsqueeze(1)
            convolved = functional.conv1d(
                x.transpose(1, 2), weight, self.bias, groups=weight.shape[0]
            )
            return convolved.transpose(1, 2)
        length = x.shape[1] - self.kernel + 1
        first, *others = self.weight.unbind()
        total = torch.addcmul(self.bias, x[:, :length], first)
        for tap, weight in enumerate(others, start=1):
            total.addcmul_(x[:, tap : tap + length], weight)
        return total


class ConvNextBlock(nn.Module):
    """Depthwise convolution, LayerNorm, a two-layer perceptron and a residual connection.

    Letters: B batch, L positions, C channels, K the kernel.
    """

    def __init__(self, channels: int, hidden: int, kernel: int, scale: float = 0.3) -> None:
        super().__init__()
        self.kernel = kernel
        self.conv = DepthwiseConv(channels, kernel)
        self.norm = nn.LayerNorm(channels)
        self.up = TrainableRowLinear(channels, hidden)
        self.down = TrainableRowLinear(hidden, channels)
        self.gain = nn.Parameter(torch.full((channels,), scale))

    def mix(self, context: torch.Tensor) -> torch.Tensor:
        """[B, L + K - 1, C] input with context -> [B, L, C] update, without the residual."""
        update: torch.Tensor = self.norm(self.conv(context))
        update = self.down(functional.gelu(self.up(update)))
        return update * self.gain

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Centred: position l sees K // 2 positions on each side, zero outside the input.

        Args:
            x: [B, L, C].
            mask: [B, L, 1] of 0 and 1; keeps positions beyond a row's end at zero.
        """
        side = self.kernel // 2
        x = x + self.mix(functional.pad(x, (0, 0, side, self.kernel - 1 - side)))
        return x if mask is None else x * mask

    def forward_causal(self, x: torch.Tensor, history: torch.Tensor) -> torch.Tensor:
        """Position l sees itself and K - 1 earlier positions.

        Args:
            x: [B, L, C].
            history: [B, K - 1, C], the inputs before x; replaced in place by the last inputs.
        """
        context = torch.cat([history, x], dim=1)
        history.copy_(context[:, context.shape[1] - self.kernel + 1 :].detach())
        return x + self.mix(context)
