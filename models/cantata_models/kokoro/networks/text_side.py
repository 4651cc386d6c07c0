"""From phones to what is said when: features of the text, durations, pitch and energy.

Letters: T phones, F frames, G = 2 F values of pitch, H hidden numbers, S numbers of half a style.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from cantata_models.kokoro.config import BertConfig, KokoroConfig
from cantata_models.kokoro.networks.adaptive import AdaptiveBlock, AdaptiveLayerNorm

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
            self.add_module(name, nn.Linear(config.hidden, config.hidden))
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


class _Layer(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.ffn = nn.Linear(config.hidden, config.inner)
        self.ffn_output = nn.Linear(config.inner, config.hidden)
        self.full_layer_layer_norm = nn.LayerNorm(config.hidden, eps=BERT_EPSILON)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.attention(x)
        inner = functional.gelu(self.ffn(x), approximate="tanh")
        made: torch.Tensor = self.full_layer_layer_norm(x + self.ffn_output(inner))
        return made


class _Group(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.albert_layers = nn.ModuleList([_Layer(config)])


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
    """[1, H, T] -> the same: each phone is normalised over its numbers."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normal = functional.layer_norm(x.mT, self.gamma.shape, self.gamma, self.beta, 1e-5)
        return normal.mT


class TextEncoder(nn.Module):
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


class ProsodyPredictor(nn.Module):
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
