"""From phones to what is said when: features of the text, durations, pitch and energy.

A voice's style sets the gain and the offset of each channel of many layers.

Letters: T phones or time, F frames, G = 2 F values of pitch, H hidden numbers, C channels, S
numbers of half a style.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.row_products import RowLinear
from cantata_models.kokoro.config import BertConfig, KokoroConfig

EPSILON = 1e-5
BLOCK_SLOPE = 0.2
_HALF_POWER = 0.5**0.5
_STRETCH = 512
"""Moments whose activations are made at once."""


class Affine(nn.Module):
    """A gain and an offset of each channel that do not depend on the style. Published checkpoints
    leave them out; they are 1 and 0 then."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))


def measure(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[1, C, T] -> [C] means and [C] variances."""
    mean = x[0].mean(dim=-1, keepdim=True)
    # On a CPU, ten times as fast as `torch.var_mean`; in stretches that a core's cache holds.
    parts = torch.split(x[0], _STRETCH, dim=1)
    lengths = torch.stack([torch.linalg.vector_norm(part - mean, dim=-1) for part in parts])
    return mean[:, 0], lengths.square().sum(0) / x.shape[-1]


class Moments:
    """Means and variances at every norm, over all parts of a sentence so far: a later part is
    normalized nearly as in the whole sentence, so that its loudness does not jump."""

    def __init__(self) -> None:
        self._known: dict[nn.Module, tuple[int, torch.Tensor, torch.Tensor]] = {}

    def add(self, norm: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Take the next part into account.

        Args:
            norm: where it is normalized.
            x: [1, C, T] before that.

        Returns:
            [C] means and [C] variances of all parts.
        """
        count = x.shape[-1]
        mean, variance = measure(x)
        if norm in self._known:
            before, earlier_mean, earlier_variance = self._known[norm]
            total = before + count
            change = mean - earlier_mean
            variance = (
                before * earlier_variance + count * variance + before * count / total * change**2
            ) / total
            mean = earlier_mean + count / total * change
            count = total
        self._known[norm] = (count, mean, variance)
        return mean, variance


class AdaptiveInstanceNorm(nn.Module):
    """[1, C, T] -> the same: each channel is normalized over time, then the style's gain and offset
    apply. T is at least 2."""

    def __init__(self, channels: int, style: int) -> None:
        super().__init__()
        self.norm = Affine(channels)
        self.fc = nn.Linear(style, 2 * channels)

    def forward(self, x: torch.Tensor, style: torch.Tensor) -> torch.Tensor:
        """Args: x [1, C, T], style [1, S]."""
        scale, shift = self.fit(x, style)
        return torch.addcmul(shift, x, scale)

    def fit(
        self, x: torch.Tensor, style: torch.Tensor, moments: Moments | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What x is multiplied by, and what is added then, both [1, C, 1].

        Args:
            x: [1, C, T]
            style: [1, S]
            moments: of the parts before; None: x is the whole.
        """
        gain, offset = self.fc(style)[0].chunk(2)
        gain = 1 + gain
        # All affine steps in one.
        weight, bias = gain * self.norm.weight, gain * self.norm.bias + offset
        mean, variance = measure(x) if moments is None else moments.add(self, x)
        scale = weight * torch.rsqrt(variance + EPSILON)
        return scale[None, :, None], (bias - mean * scale)[None, :, None]


class AdaptiveLayerNorm(nn.Module):
    """[1, T, C] -> the same: each moment is normalized over its channels."""

    def __init__(self, channels: int, style: int) -> None:
        super().__init__()
        self.fc = nn.Linear(style, 2 * channels)

    def forward(self, x: torch.Tensor, style: torch.Tensor) -> torch.Tensor:
        """Args: x [1, T, C], style [1, S]."""
        gain, offset = self.fc(style)[0].chunk(2)
        return functional.layer_norm(x, gain.shape, weight=1 + gain, bias=offset, eps=EPSILON)


class AdaptiveBlock(nn.Module):
    """[1, C, T] -> [1, outputs, T], or 2 T if it upsamples: two convolutions and a residual."""

    def __init__(self, inputs: int, outputs: int, style: int, upsample: bool = False) -> None:
        super().__init__()
        self.norm1 = AdaptiveInstanceNorm(inputs, style)
        self.conv1 = nn.Conv1d(inputs, outputs, 3, padding=1)
        self.norm2 = AdaptiveInstanceNorm(outputs, style)
        self.conv2 = nn.Conv1d(outputs, outputs, 3, padding=1)
        self.pool = (
            nn.ConvTranspose1d(
                inputs, inputs, 3, stride=2, padding=1, output_padding=1, groups=inputs
            )
            if upsample
            else None
        )
        self.conv1x1 = nn.Conv1d(inputs, outputs, 1, bias=False) if inputs != outputs else None

    def forward(self, x: torch.Tensor, style: torch.Tensor) -> torch.Tensor:
        """Args: x [1, C, T], style [1, S]."""
        made = functional.leaky_relu(self.norm1(x, style), BLOCK_SLOPE)
        if self.pool is not None:
            made = self.pool(made)
            x = x.repeat_interleave(2, dim=-1)
        made = _convolve(self.conv1, made)
        made = _convolve(self.conv2, functional.leaky_relu(self.norm2(made, style), BLOCK_SLOPE))
        if self.conv1x1 is not None:
            x = self.conv1x1(x)
        total: torch.Tensor = (made + x) * _HALF_POWER
        return total


def _convolve(conv: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """In the type of its weights."""
    made: torch.Tensor = conv(x.to(_find_dtype(conv)))
    return made.float()


def _find_dtype(conv: nn.Module) -> torch.dtype:
    """What a convolution takes."""
    return conv.weight.dtype if isinstance(conv, nn.Conv1d) else torch.float32


class PeriodicBlock(nn.Module):
    """[1, C, T] -> the same: three residual steps of two convolutions, each behind a norm and a
    periodic activation."""

    def __init__(self, channels: int, kernel: int, dilations: Sequence[int], style: int) -> None:
        super().__init__()
        count = range(len(dilations))
        self.convs1 = nn.ModuleList(
            nn.Conv1d(channels, channels, kernel, dilation=wide, padding=wide * (kernel - 1) // 2)
            for wide in dilations
        )
        self.convs2 = nn.ModuleList(
            nn.Conv1d(channels, channels, kernel, padding=(kernel - 1) // 2) for _ in count
        )
        self.adain1 = nn.ModuleList(AdaptiveInstanceNorm(channels, style) for _ in count)
        self.adain2 = nn.ModuleList(AdaptiveInstanceNorm(channels, style) for _ in count)
        self.alpha1 = nn.ParameterList(torch.ones(1, channels, 1) for _ in count)
        self.alpha2 = nn.ParameterList(torch.ones(1, channels, 1) for _ in count)

    def forward(
        self, x: torch.Tensor, style: torch.Tensor, moments: Moments | None = None
    ) -> torch.Tensor:
        """Args: x [1, C, T], style [1, S], moments of the parts before; None: x is the whole."""
        first = zip(self.adain1, self.alpha1, self.convs1, strict=True)
        second = zip(self.adain2, self.alpha2, self.convs2, strict=True)
        dtype = _find_dtype(self.convs1[0])
        for (norm1, alpha1, conv1), (norm2, alpha2, conv2) in zip(first, second, strict=True):
            affine1 = cast(AdaptiveInstanceNorm, norm1).fit(x, style, moments)
            made = conv1(_oscillate(x, affine1, alpha1, dtype)).float()
            affine2 = cast(AdaptiveInstanceNorm, norm2).fit(made, style, moments)
            x = x + conv2(_oscillate(made, affine2, alpha2, dtype))
        return x


def _oscillate(
    x: torch.Tensor,
    affine: tuple[torch.Tensor, torch.Tensor],
    alpha: torch.Tensor,
    dtype: torch.dtype,
) -> torch.Tensor:
    """y + sin(alpha y)² / alpha, the activation "snake", of y = scale x + shift.

    In stretches that a core's cache holds, which halves the time on a CPU.

    Args:
        x: [1, C, T]
        affine: scale and shift, [1, C, 1] each.
        alpha: [1, C, 1]
        dtype: of the result.
    """
    scale, shift = affine
    made = torch.empty_like(x, dtype=dtype)
    stretches = (torch.split(one, _STRETCH, dim=2) for one in (x, made))
    for part, target in zip(*stretches, strict=True):
        normal = (part * scale).add_(shift)  # a third of the time of `addcmul`
        wave = (alpha * normal).sin_()
        target.copy_(torch.addcmul(normal, wave, wave / alpha))
    return made


BERT_EPSILON = 1e-12
TEXT_SLOPE = 0.2


class _Embeddings(nn.Module):
    def __init__(self, config: BertConfig, tokens: int) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(tokens, config.embedding)
        self.position_embeddings = nn.Embedding(config.positions, config.embedding)
        self.token_type_embeddings = nn.Embedding(2, config.embedding)
        self.LayerNorm = nn.LayerNorm(config.embedding, eps=BERT_EPSILON)

    def forward(self, phones: torch.Tensor) -> torch.Tensor:
        places = self.position_embeddings.weight[: phones.shape[1]]
        kind = self.token_type_embeddings.weight[0]
        embedded: torch.Tensor = self.LayerNorm(self.word_embeddings(phones) + kind + places)
        return embedded


class _Attention(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self._heads = config.heads
        for name in ("query", "key", "value", "dense"):
            self.add_module(name, RowLinear(config.hidden, config.hidden))
        self.LayerNorm = nn.LayerNorm(config.hidden, eps=BERT_EPSILON)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        split = (1, x.shape[1], self._heads, -1)
        queries, keys, values = (
            self.get_submodule(name)(x).view(split).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        mixed = functional.scaled_dot_product_attention(queries, keys, values)
        joined = mixed.transpose(1, 2).reshape(x.shape)
        attended: torch.Tensor = self.LayerNorm(x + self.get_submodule("dense")(joined))
        return attended


class _AlbertLayer(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.ffn = RowLinear(config.hidden, config.inner)
        self.ffn_output = RowLinear(config.inner, config.hidden)
        self.full_layer_layer_norm = nn.LayerNorm(config.hidden, eps=BERT_EPSILON)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.attention(x)
        inner = functional.gelu(self.ffn(x), approximate="tanh")
        made: torch.Tensor = self.full_layer_layer_norm(x + self.ffn_output(inner))
        return made


class _Group(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.albert_layers = nn.ModuleList([_AlbertLayer(config)])


class _Encoder(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self._layers = config.layers
        self.embedding_hidden_mapping_in = nn.Linear(config.embedding, config.hidden)
        self.albert_layer_groups = nn.ModuleList([_Group(config)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embedding_hidden_mapping_in(x)
        layer = self.get_submodule("albert_layer_groups.0.albert_layers.0")
        for _ in range(self._layers):
            x = layer(x)
        return x


class PhoneBert(nn.Module):
    """[1, T] ids -> [1, T, hidden]: PL-BERT."""

    def __init__(self, config: BertConfig, tokens: int) -> None:
        super().__init__()
        self.embeddings = _Embeddings(config, tokens)
        self.encoder = _Encoder(config)

    def forward(self, phones: torch.Tensor) -> torch.Tensor:
        """Args: phones [1, T] int64."""
        made: torch.Tensor = self.encoder(self.embeddings(phones))
        return made


class _ChannelNorm(nn.Module):
    """[1, H, T] -> the same: each phone is normalized over its numbers."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normal = functional.layer_norm(x.mT, self.gamma.shape, self.gamma, self.beta, 1e-5)
        return normal.mT


class KokoroTextEncoder(nn.Module):
    """[1, T] ids -> [1, H, T]: which sounds the decoder is to make."""

    def __init__(self, config: KokoroConfig) -> None:
        super().__init__()
        size, kernel = config.hidden, config.kernel
        self.embedding = nn.Embedding(config.tokens, size)
        self.cnn = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(size, size, kernel, padding=(kernel - 1) // 2),
                _ChannelNorm(size),
                nn.LeakyReLU(TEXT_SLOPE),
            )
            for _ in range(config.layers)
        )
        self.lstm = _both_ways(size, size)

    def forward(self, phones: torch.Tensor) -> torch.Tensor:
        """Args: phones [1, T] int64."""
        x = self.embedding(phones).mT
        for layer in self.cnn:
            x = layer(x)
        made: torch.Tensor = self.lstm(x.mT)[0]
        return made.mT


class _DurationEncoder(nn.Module):
    """[1, T, H] -> [1, T, H + S], the style at the end of each row."""

    def __init__(self, config: KokoroConfig) -> None:
        super().__init__()
        size, style = config.hidden, config.style
        layers = list[nn.Module]()
        for _ in range(config.layers):
            layers += [_both_ways(size + style, size), AdaptiveLayerNorm(size, style)]
        self.lstms = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor, style: torch.Tensor) -> torch.Tensor:
        styles = style[:, None].expand(-1, x.shape[1], -1)
        x = torch.cat([x, styles], dim=-1)
        for lstm, norm in zip(self.lstms[::2], self.lstms[1::2], strict=True):
            x = torch.cat([norm(lstm(x)[0], style), styles], dim=-1)
        return x


class _LinearNorm(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear_layer = nn.Linear(inputs, outputs)


class KokoroProsodyPredictor(nn.Module):
    """How long each phone is, and the pitch and the energy of each moment."""

    def __init__(self, config: KokoroConfig) -> None:
        super().__init__()
        size, style = config.hidden, config.style
        self.text_encoder = _DurationEncoder(config)
        self.lstm = _both_ways(size + style, size)
        self.duration_proj = _LinearNorm(size, config.longest)
        self.shared = _both_ways(size + style, size)
        self.F0 = _curve_blocks(size, style)
        self.N = _curve_blocks(size, style)
        self.F0_proj = nn.Conv1d(size // 2, 1, 1)
        self.N_proj = nn.Conv1d(size // 2, 1, 1)

    def time_phones(
        self, text: torch.Tensor, style: torch.Tensor, speed: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what `draw_curves` needs of each phone, and how long it is.

        Args:
            text: [1, T, H] PL-BERT's features.
            style: [1, S], the half for the prosody.
            speed: of speaking; 2 halves the durations.

        Returns:
            [1, T, H + S] features, and [T] int64 frames, at least 1 each.
        """
        features = self.text_encoder(text, style)
        chances = torch.sigmoid(self.duration_proj.linear_layer(self.lstm(features)[0]))
        frames = torch.round(chances.sum(dim=-1) / speed).clamp(min=1)
        return features, frames[0].long()

    def draw_curves(
        self, features: torch.Tensor, style: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the pitch and the energy.

        Args:
            features: [1, F, H + S] of the phone that each frame is in.
            style: [1, S], the half for the prosody.

        Returns:
            [1, G] Hz, unvoiced where it is low; [1, G] the logarithm of a norm of the spectrum.
        """
        shared = self.shared(features)[0].mT
        curves = []
        for blocks, projection in ((self.F0, self.F0_proj), (self.N, self.N_proj)):
            x = shared
            for block in blocks:
                x = block(x, style)
            curves.append(projection(x)[:, 0])
        return curves[0], curves[1]


def _curve_blocks(size: int, style: int) -> nn.ModuleList:
    return nn.ModuleList(
        [
            AdaptiveBlock(size, size, style),
            AdaptiveBlock(size, size // 2, style, upsample=True),
            AdaptiveBlock(size // 2, size // 2, style),
        ]
    )


def _both_ways(inputs: int, outputs: int) -> nn.LSTM:
    return nn.LSTM(inputs, outputs // 2, batch_first=True, bidirectional=True)
