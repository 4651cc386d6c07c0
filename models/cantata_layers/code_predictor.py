"""The code predictor: predicts a frame's other codes one by one from its hidden state and code 0.

It is a short Qwen3 stack over the codebooks of one frame. Its input is [hidden state, code 0,
code 1, ...], and it has an embedding and a head for each codebook after the first. Projections are
fused. The keys and values of one frame fit in one small tensor, so no cache outlives a frame.

Letters: R requests, D the talker's width, H the predictor's, V codes, Q codebooks, E head size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.row_products import RowLinear, RowProducts
from cantata_layers.qwen3_config import Qwen3Stack

ChooseCode = Callable[[torch.Tensor, int], torch.Tensor]
"""[R, V] scores and the codebook -> [R] int64 codes."""
_IN_LAYER = {
    "self_attn": ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm"),
    "mlp": ("gate_proj", "up_proj", "down_proj"),
}
"""Modules of a published layer that only wrap its parts."""
PREDICTOR_STACKS = ("code_predictor.codec_embedding", "code_predictor.lm_head")
"""Parameters with a part for each codebook after the first."""
CosSin = tuple[torch.Tensor, torch.Tensor]
"""Cosines and sines of rotary positions, of one shape: [Q, E] here."""


class PredictorRmsNorm(nn.Module):
    """Root mean square norm."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self._eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(x, self.weight.shape, self.weight, self._eps)


class FusedLinear(RowLinear):
    """Several projections of one input in one product, loaded as in vLLM's layers.

    Args:
        parts: name of a part -> its number of output features.
    """

    def __init__(self, in_features: int, parts: Mapping[str | int, int]) -> None:
        super().__init__(in_features, sum(parts.values()), bias=False)
        self._parts = parts
        self.weight.weight_loader = self._load_part  # type: ignore[attr-defined]

    def _load_part(self, weight: nn.Parameter, tensor: torch.Tensor, part: str | int) -> None:
        names = list(self._parts)
        start = sum(self._parts[name] for name in names[: names.index(part)])
        target = weight.data[start : start + self._parts[part]]
        if target.shape != tensor.shape:
            raise ValueError(f"{list(tensor.shape)} does not fit {list(target.shape)}")
        target.copy_(tensor)


class PredictorLayer(nn.Module):
    """Attention and feed-forward, each with a norm before it and a residual connection."""

    def __init__(self, config: Qwen3Stack) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = config.heads, config.kv_heads, config.head_dim
        hidden, eps = config.hidden_size, config.rms_norm_eps
        q_size, kv_size = self.heads * self.head_dim, self.kv_heads * self.head_dim
        self.input_layernorm = PredictorRmsNorm(hidden, eps)
        self.qkv_proj = FusedLinear(hidden, {"q": q_size, "k": kv_size, "v": kv_size})
        self.q_norm = PredictorRmsNorm(self.head_dim, eps)
        self.k_norm = PredictorRmsNorm(self.head_dim, eps)
        self.o_proj = RowLinear(q_size, hidden, bias=False)
        self.post_attention_layernorm = PredictorRmsNorm(hidden, eps)
        inner = config.intermediate_size
        self.gate_up_proj = FusedLinear(hidden, {0: inner, 1: inner})
        self.down_proj = RowLinear(inner, hidden, bias=False)

    def forward(
        self, x: torch.Tensor, start: int, cos_sin: CosSin, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """[R, T, H] at positions start.. -> [R, T, H]. Fills keys and values [R, K, Q, E]."""
        x = x + self._attend(self.input_layernorm(x), start, cos_sin, keys, values)
        gate, up = self.gate_up_proj(self.post_attention_layernorm(x)).chunk(2, dim=-1)
        return x + torch.as_tensor(self.down_proj(functional.silu(gate) * up))

    def _attend(
        self, x: torch.Tensor, start: int, cos_sin: CosSin, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        requests, length, _ = x.shape
        end = start + length
        heads = self.qkv_proj(x).view(requests, length, -1, self.head_dim).transpose(1, 2)
        query, key, value = heads.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        cos, sin = (part[start:end] for part in cos_sin)
        query = _rotate(self.q_norm(query), cos, sin)
        keys[:, :, start:end] = _rotate(self.k_norm(key), cos, sin)
        values[:, :, start:end] = value
        mixed = functional.scaled_dot_product_attention(
            query, keys[:, :, :end], values[:, :, :end], is_causal=length > 1, enable_gqa=True
        )
        return torch.as_tensor(self.o_proj(mixed.transpose(1, 2).reshape(requests, length, -1)))


class CodePredictor(nn.Module):
    """The stack with its embeddings and heads.

    Args:
        config: config of the stack; `vocab_size` is V.
        talker_size: D; if it differs from H, a projection precedes the stack.
        num_codebooks: Q, including code 0.
    """

    def __init__(self, config: Qwen3Stack, talker_size: int, num_codebooks: int) -> None:
        super().__init__()
        self._config = config
        self._num_codebooks = num_codebooks
        others = num_codebooks - 1
        self.codec_embedding = nn.Parameter(torch.empty(others, config.vocab_size, talker_size))
        self.lm_head = nn.Parameter(torch.empty(others, config.vocab_size, config.hidden_size))
        self._heads = RowProducts()
        self.small_to_mtp_projection = (
            RowLinear(talker_size, config.hidden_size)
            if talker_size != config.hidden_size
            else nn.Identity()
        )
        self.layers = nn.ModuleList(PredictorLayer(config) for _ in range(config.layers))
        self.norm = PredictorRmsNorm(config.hidden_size, config.rms_norm_eps)
        cos_sin = _compute_angles(num_codebooks, config.head_dim, config.rope_theta)
        self.register_buffer("cos", cos_sin[0], persistent=False)
        self.register_buffer("sin", cos_sin[1], persistent=False)

    def embed(self, codes: torch.Tensor) -> torch.Tensor:
        """[N, Q - 1] codes after code 0 -> [N, Q - 1, D]."""
        books = torch.arange(self._num_codebooks - 1, device=codes.device)
        return self.codec_embedding[books, codes]

    def forward(
        self, hidden: torch.Tensor, code0: torch.Tensor, choose: ChooseCode
    ) -> torch.Tensor:
        """Complete frames.

        Args:
            hidden: [R, D], the talker's hidden states after its last norm.
            code0: [R, D], the embedded first codes.
            choose: draws the codes of one codebook.

        Returns:
            [R, Q - 1] int64.
        """
        config, requests = self._config, hidden.shape[0]
        shape = (config.layers, 2, requests, config.kv_heads, self._num_codebooks, config.head_dim)
        cache = hidden.new_empty(shape)
        x = torch.stack((hidden, code0), dim=1)
        start, codes = 0, list[torch.Tensor]()
        for book in range(self._num_codebooks - 1):
            last = self._run(x, start, cache)
            scores = self._heads(last, self.lm_head[book], None, key=book)
            codes.append(choose(scores, book + 1))
            start += x.shape[1]
            x = self.codec_embedding[book][codes[-1]][:, None]
        return torch.stack(codes, dim=1)

    def _run(self, x: torch.Tensor, start: int, cache: torch.Tensor) -> torch.Tensor:
        """[R, T, D] at positions start.. -> [R, H], the hidden state of the last position."""
        x = self.small_to_mtp_projection(x)
        cos_sin = (self.cos, self.sin)
        for layer, (keys, values) in zip(self.layers, cache, strict=True):
            x = layer(x, start, cos_sin, keys, values)
        return torch.as_tensor(self.norm(x[:, -1]))


def predictor_names(prefix: str) -> dict[str, str]:
    """Return the published names of a talker's `code_predictor`, for a `WeightMap`.

    Args:
        prefix: of the talker's published names.
    """
    own, published = "code_predictor.", f"{prefix}code_predictor."
    return {
        f"{published}model.codec_embedding.{{}}.weight": f"{own}codec_embedding.{{}}",
        f"{published}lm_head.{{}}.weight": f"{own}lm_head.{{}}",
        **{
            f"{published}model.layers.{{}}.{module}.{part}.{{}}": f"{own}layers.{{}}.{part}.{{}}"
            for module, parts in _IN_LAYER.items()
            for part in parts
        },
        f"{published}small_to_mtp_projection.{{}}": f"{own}small_to_mtp_projection.{{}}",
        f"{published}model.{{}}": f"{own}{{}}",
    }


def _compute_angles(positions: int, head_dim: int, theta: float) -> CosSin:
    """Return float32 angles of rotary position embedding, halves repeated (Su et al. 2021)."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    angles = torch.arange(positions, dtype=torch.float32)[:, None] / theta**exponents
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """[..., T, E] rotated by [T, E] angles."""
    first, second = x.chunk(2, dim=-1)
    rotated = x * cos + torch.cat((-second, first), dim=-1) * sin
    return rotated.to(x.dtype)
