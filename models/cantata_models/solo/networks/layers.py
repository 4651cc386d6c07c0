"""Building blocks whose float32 results on a CPU do not depend on the rows beside a row.

Matrix libraries choose kernels, and with them the order of summation, by the number of rows. What
was measured (torch 2.13, AVX-512, one and two threads, every shape used here):

- oneDNN with weights packed once (`RowLinear`) gives a row the same bits in any company; only a
  single row of more than a thousand features takes another kernel, so there are always two. For a
  few rows it also takes half the time of MKL, which packs the weights anew in every call.
- MKL (`row_product`, for matrices that are not a layer's weights) does so from eight rows on.

LayerNorm, GELU, exp, sin, cos and irfft are exact per row as they are; SiLU is not (its vector and
scalar paths differ by a bit).
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

ROW_BLOCK = 16
"""Rows of MKL's products are padded to a multiple of this."""
PACKED_ROWS = 16
"""Rows for which oneDNN lays out the weights; any number may be multiplied."""


def in_training(input: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether gradients or bfloat16 are wanted, so that exactness does not matter."""
    wants_gradient = torch.is_grad_enabled() and (input.requires_grad or weight.requires_grad)
    return wants_gradient or torch.is_autocast_enabled(input.device.type)


def row_product(
    rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """[R, in] and [out, in] -> [R, out], exact per row on a CPU, without gradients."""
    missing = -len(rows) % ROW_BLOCK
    if not missing:
        return functional.linear(rows, weight, bias)
    return functional.linear(functional.pad(rows, (0, 0, 0, missing)), weight, bias)[:-missing]


class RowLinear(nn.Linear):
    """A linear layer, exact per row in inference. [..., in_features] -> [..., out_features]."""

    _packed: torch.Tensor | None = None
    _packed_version = -1

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if in_training(input, self.weight) or input.device.type != "cpu":
            return super().forward(input)
        rows = input.reshape(-1, self.in_features)
        if len(rows) == 1:
            product = self._product(rows.expand(2, -1).contiguous())[:1]
        else:
            product = self._product(rows)
        return product.view(*input.shape[:-1], self.out_features)

    def _product(self, rows: torch.Tensor) -> torch.Tensor:
        packed, version = self._packed, self.weight._version
        if packed is None or version != self._packed_version:
            weight = self.weight.detach()
            packed = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_ROWS)
            self._packed, self._packed_version = packed, version
        product = torch.ops.mkldnn._linear_pointwise(rows, packed, self.bias, "none", [], "")
        return torch.as_tensor(product)


class DepthwiseConv(nn.Module):
    """A depthwise convolution over positions without padding: [B, L + K - 1, C] -> [B, L, C].

    In inference it is a sum of shifted products in a fixed order, which is exact per element;
    training uses torch's convolution.
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
        total = self.bias.expand(x.shape[0], length, -1)
        for tap in range(self.kernel):
            total = total + x[:, tap : tap + length] * self.weight[tap]
        return total


class ConvNextBlock(nn.Module):
    """Depthwise convolution, LayerNorm, a two-layer perceptron, and the residual.

    Letters: B batch, L positions, C channels, K the kernel.
    """

    def __init__(self, channels: int, hidden: int, kernel: int, scale: float = 0.3) -> None:
        super().__init__()
        self.kernel = kernel
        self.conv = DepthwiseConv(channels, kernel)
        self.norm = nn.LayerNorm(channels)
        self.up = RowLinear(channels, hidden)
        self.down = RowLinear(hidden, channels)
        self.gain = nn.Parameter(torch.full((channels,), scale))

    def mix(self, context: torch.Tensor) -> torch.Tensor:
        """[B, L + K - 1, C] input with its context -> [B, L, C] update, without the residual."""
        update: torch.Tensor = self.norm(self.conv(context))
        update = self.down(functional.gelu(self.up(update)))
        return update * self.gain

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Centred: position l sees K // 2 positions on each side; the outside is zero.

        Args:
            x: [B, L, C].
            mask: [B, L, 1] of 0 and 1; what lies beyond a row's end is kept at zero.
        """
        side = self.kernel // 2
        x = x + self.mix(functional.pad(x, (0, 0, side, self.kernel - 1 - side)))
        return x if mask is None else x * mask

    def forward_causal(self, x: torch.Tensor, history: torch.Tensor) -> torch.Tensor:
        """Position l sees itself and K - 1 earlier positions.

        Args:
            x: [B, L, C].
            history: [B, K - 1, C], the inputs before x; replaced in place by the last ones.
        """
        context = torch.cat([history, x], dim=1)
        history.copy_(context[:, context.shape[1] - self.kernel + 1 :].detach())
        return x + self.mix(context)
