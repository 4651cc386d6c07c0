"""What turns a hidden state of the backbone into a frame: the choice to stop, then Q codes.

MOSS-TTS-Local and MOSS-TTS-Nano use the same network in two ways. Position 0 of a frame is the
hidden state, and its output chooses between going on and stopping. In Local it also chooses code 0.
In Nano the choice to go on is a position of its own, whose output chooses code 0. Then each code is
the position whose output chooses the next one. A codebook's table of embeddings also is its head.

The local transformer is a short stack of GPT-2 blocks over the positions of one frame. The keys and
values of one frame fit in one small tensor, so no cache outlives a frame. Every operation gives a
row the same bits among any number of rows.

Letters: R requests, N rows, T new positions, P positions of a frame, D hidden size, H heads, E head
size, V codes, Q codebooks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.row_products import RowLinear, RowProducts
from cantata_layers.exact_layers import silu
from cantata_models.moss_tts.config import Activation, Gpt2Stack, MossConfig


@dataclass(slots=True)
class FramePast:
    """Keys and values of the positions of one frame so far."""

    keys: torch.Tensor
    """[layers, R, H, P, E], as `values`."""
    values: torch.Tensor
    length: int = 0
    """Filled positions."""


class MossLocalTransformer(nn.Module):
    """The stack with its last norm. `positions`: P."""

    def __init__(self, config: Gpt2Stack, positions: int) -> None:
        super().__init__()
        self._config = config
        self._positions = positions
        self.h = nn.ModuleList(MossLocalBlock(config) for _ in range(config.layers))
        self.ln_f = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.cos: torch.Tensor
        self.sin: torch.Tensor
        cos, sin = rotary_angles(positions, config.head_dim, config.rope_theta)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def begin(self, rows: torch.Tensor) -> FramePast:
        """Return the empty past of R frames, on the device and of the dtype of these rows."""
        config = self._config
        shape = (config.layers, len(rows), config.heads, self._positions, config.head_dim)
        return FramePast(rows.new_empty(shape), rows.new_empty(shape))

    def forward(self, rows: torch.Tensor, past: FramePast) -> torch.Tensor:
        """[R, T, D] at the next T positions -> [R, T, D]. Extends the past."""
        start, end = past.length, past.length + rows.shape[1]
        cos_sin = (self.cos[start:end], self.sin[start:end])
        for block, keys, values in zip(self.h, past.keys, past.values, strict=True):
            rows = block(rows, cos_sin, keys[:, :, :end], values[:, :, :end])
        past.length = end
        return torch.as_tensor(self.ln_f(rows))


class MossLocalBlock(nn.Module):
    """Attention and feed-forward, each with a norm before it and a residual connection."""

    def __init__(self, config: Gpt2Stack) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.attn = MossLocalAttention(config)
        self.ln_2 = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.mlp = MossLocalFeedForward(config)

    def forward(
        self,
        rows: torch.Tensor,
        cos_sin: tuple[torch.Tensor, torch.Tensor],
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> torch.Tensor:
        """[R, T, D] -> [R, T, D]; fills the last T of [R, H, ., E] keys and values."""
        rows = rows + self.attn(self.ln_1(rows), cos_sin, keys, values)
        return rows + torch.as_tensor(self.mlp(self.ln_2(rows)))


class MossLocalAttention(nn.Module):
    """Each position attends to itself and to those before it."""

    def __init__(self, config: Gpt2Stack) -> None:
        super().__init__()
        self._heads, self._head_dim = config.heads, config.head_dim
        size = config.hidden_size
        self.c_attn = RowLinear(size, 3 * size)
        self.c_proj = RowLinear(size, size)

    def forward(
        self,
        rows: torch.Tensor,
        cos_sin: tuple[torch.Tensor, torch.Tensor],
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> torch.Tensor:
        requests, new, size = rows.shape
        heads = self.c_attn(rows).view(requests, new, 3, self._heads, self._head_dim)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        keys[:, :, -new:] = apply_rotary(key, *cos_sin)
        values[:, :, -new:] = value
        # Several new positions are the first ones of a frame, so the mask is square.
        mixed = functional.scaled_dot_product_attention(
            apply_rotary(query, *cos_sin), keys, values, is_causal=new > 1
        )
        return torch.as_tensor(self.c_proj(mixed.transpose(1, 2).reshape(requests, new, size)))


class MossLocalFeedForward(nn.Module):
    """Two products with a nonlinearity between them."""

    def __init__(self, config: Gpt2Stack) -> None:
        super().__init__()
        self._activate = ACTIVATIONS[config.activation]
        self.fc_in = RowLinear(config.hidden_size, config.intermediate_size)
        self.fc_out = RowLinear(config.intermediate_size, config.hidden_size)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """[..., D] -> [..., D]."""
        return torch.as_tensor(self.fc_out(self._activate(self.fc_in(rows))))


def rotary_angles(positions: int, head_dim: int, theta: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return [P, E] float32 cosines and sines of the positions, each of a pair's two alike."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    angles = torch.arange(positions, dtype=torch.float32)[:, None] * (1.0 / theta**exponents)
    angles = angles.repeat_interleave(2, dim=-1)
    return angles.cos(), angles.sin()


def apply_rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """[..., T, E] with each pair of neighbours turned by [T, E] angles, in the dtype of `x`."""
    across = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    return (x * cos + across * sin).to(x.dtype)


def gelu_new(x: torch.Tensor) -> torch.Tensor:
    """GELU (Hendrycks & Gimpel 2016) in its approximation by tanh; by hand for the reason that
    `silu` has."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


ACTIVATIONS = {Activation.SILU: silu, Activation.GELU_NEW: gelu_new}


ChooseCode = Callable[[torch.Tensor, int], torch.Tensor]
"""[R, V] scores and the codebook -> [R] int64 codes."""
GO_ON = 0
"""Of the stop scores; the other one is to stop."""


@dataclass(frozen=True, slots=True)
class BegunFrames:
    """Frames before their first code is chosen."""

    stop_scores: torch.Tensor
    """[R, 2]: to go on, to stop."""
    code0_scores: torch.Tensor
    """[R, V]"""
    past: FramePast


class FrameNetwork(nn.Module):
    """Completes frames, and embeds them for the backbone."""

    def __init__(self, config: MossConfig) -> None:
        super().__init__()
        books, size = config.num_codebooks, config.local.hidden_size
        self._num_codebooks = books
        self._feeds_choice = config.stop_is_text
        self.audio_embeddings = nn.Parameter(torch.empty(books, config.codebook_size, size))
        self.local_text_lm_head = RowLinear(size, 2, bias=False)
        self.local_transformer = MossLocalTransformer(
            config.local, books + int(config.stop_is_text)
        )
        self._heads = RowProducts()

    def embed(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, Q] codes -> [N, D], the sum over codebooks."""
        books = torch.arange(self._num_codebooks, device=frames.device)
        return self.audio_embeddings[books, frames].sum(dim=1)

    def begin(self, hidden: torch.Tensor) -> BegunFrames:
        """Begin frames from [R, D] hidden states of the backbone, after its last norm."""
        past = self.local_transformer.begin(hidden)
        rows = hidden[:, None]
        if self._feeds_choice:
            choice = self.local_text_lm_head.weight[GO_ON].expand_as(hidden)
            rows = torch.stack((hidden, choice), dim=1)
        outputs = self.local_transformer(rows, past)
        return BegunFrames(
            stop_scores=self.local_text_lm_head(outputs[:, 0]),
            code0_scores=self._scores(outputs[:, -1], 0),
            past=past,
        )

    def complete(
        self, started: BegunFrames, code0: torch.Tensor, choose: ChooseCode
    ) -> torch.Tensor:
        """Choose the other codes of frames; a frame is completed once.

        Args:
            code0: [R] int64 first codes. Behind one outside the codebook, which ends a request,
                the other codes mean nothing.
            choose: draws the codes of one codebook.

        Returns:
            [R, Q] int64.
        """
        codes, last = [code0], self.audio_embeddings.shape[1] - 1
        for book in range(1, self._num_codebooks):
            rows = self.audio_embeddings[book - 1][codes[-1].clamp(max=last)]
            outputs = self.local_transformer(rows[:, None], started.past)
            codes.append(choose(self._scores(outputs[:, 0], book), book))
        return torch.stack(codes, dim=1)

    def _scores(self, outputs: torch.Tensor, book: int) -> torch.Tensor:
        """[R, D] -> [R, V]."""
        return self._heads(outputs, self.audio_embeddings[book], None, key=book)
