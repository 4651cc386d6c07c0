"""The code predictor: predicts a frame's other codes one by one from its hidden state and code 0.

It is a short Qwen3 stack over the codebooks of one frame. Its input is [hidden state, code 0,
code 1, ...], and it has an embedding and a head for each codebook after the first. Projections are
fused. The keys and values of one frame fit in one small tensor, so no cache outlives a frame.

Letters: R requests, D the talker's width, H the predictor's, V codes, Q codebooks, E head size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.fused_operators import (
    add_rms_norm,
    attend_in_frame,
    silu_and_multiply,
)
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

    def add(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """[..., size] each: `residual` becomes their sum, and its norm is returned."""
        return add_rms_norm(residual, x, self.weight, self._eps)


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
        self._epsilon = eps
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

    def attend(
        self, x: torch.Tensor, start: int, cos_sin: CosSin, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """[R, T, H] normalized, at positions start.. -> [R, T, H]. Fills keys and values [R, K, Q,
        E]."""
        norms = (_get_gain(self.q_norm), _get_gain(self.k_norm), self._epsilon)
        heads = self.qkv_proj(x)
        mixed = attend_in_frame(heads, *norms, *cos_sin, keys, values, start)
        return torch.as_tensor(self.o_proj(mixed))

    def feed_forward(self, x: torch.Tensor) -> torch.Tensor:
        """[R, T, H] normalized -> [R, T, H]."""
        return torch.as_tensor(self.down_proj(silu_and_multiply(self.gate_up_proj(x))))


def run_predictor_layers(
    layers: Iterable[nn.Module],
    norm: PredictorRmsNorm,
    x: torch.Tensor,
    start: int,
    cos_sin: CosSin,
    cache: torch.Tensor,
) -> torch.Tensor:
    """Run `PredictorLayer`s and the norm behind them.

    Args:
        layers: in order.
        norm: behind the last one.
        x: [R, T, H] at positions start..; changed in place.
        start: the first position.
        cos_sin: of all positions.
        cache: [layers, 2, R, K, Q, E] keys and values, filled before `start`.

    Returns:
        [R, H], the hidden state of the last position.
    """
    update: torch.Tensor | None = None
    for layer, (keys, values) in zip(layers, cache, strict=True):
        assert isinstance(layer, PredictorLayer)
        before, behind = layer.input_layernorm, layer.post_attention_layernorm
        normed = before(x) if update is None else before.add(x, update)
        normed = behind.add(x, layer.attend(normed, start, cos_sin, keys, values))
        update = layer.feed_forward(normed)
    assert update is not None, "a stack has layers"
    return norm.add(x[:, -1], update[:, -1])


class CodePredictor(nn.Module):
    """The stack with its embeddings and heads.

    Args:
        config: config of the stack; `vocab_size` is V.
        talker_size: D; if it differs from H, a projection precedes the stack.
        num_codebooks: Q, including code 0.
    """

    cos: torch.Tensor
    sin: torch.Tensor
    projected: torch.Tensor | None
    """[Q - 1, V, H], what `small_to_mtp_projection` makes of each embedding. None: it projects each
    code."""

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
        self.register_buffer("projected", self._make_projected(), persistent=False)
        self.layers = nn.ModuleList(PredictorLayer(config) for _ in range(config.layers))
        self.norm = PredictorRmsNorm(config.hidden_size, config.rms_norm_eps)
        cos_sin = _compute_angles(num_codebooks, config.head_dim, config.rope_theta)
        self.register_buffer("cos", cos_sin[0], persistent=False)
        self.register_buffer("sin", cos_sin[1], persistent=False)

    def _make_projected(self) -> torch.Tensor | None:
        """Memory for `projected`.

        WHY none on a CPU: the table doubles the memory, and saves a fortieth of what a step reads.
        """
        table, projection = self.codec_embedding, self.small_to_mtp_projection
        if table.is_cpu or isinstance(projection, nn.Identity):
            return None
        return torch.empty(*table.shape[:2], self._config.hidden_size)

    def project_embeddings(self) -> None:
        """Project each code's embedding, so that a step looks the projections up. Call it when the
        weights are loaded; it does nothing on a CPU."""
        if self.projected is None:
            return
        with torch.no_grad():
            for embedded, projected in zip(self.codec_embedding, self.projected, strict=True):
                projected.copy_(self.small_to_mtp_projection(embedded))

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
        x = self.small_to_mtp_projection(torch.stack((hidden, code0), dim=1))
        start, codes = 0, list[torch.Tensor]()
        for book in range(self._num_codebooks - 1):
            last = run_predictor_layers(
                self.layers, self.norm, x, start, (self.cos, self.sin), cache
            )
            scores = self._heads(last, self.lm_head[book], None, key=book)
            codes.append(choose(scores, book + 1))
            start += x.shape[1]
            if book + 2 < self._num_codebooks:
                x = self._embed_next(book, codes[-1])[:, None]
        return torch.stack(codes, dim=1)

    def _embed_next(self, book: int, codes: torch.Tensor) -> torch.Tensor:
        """[R] codes after code 0 of one codebook -> [R, H] rows of the stack."""
        if self.projected is not None:
            return self.projected[book][codes]
        return torch.as_tensor(self.small_to_mtp_projection(self.codec_embedding[book][codes]))


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


def _get_gain(norm: nn.Module) -> torch.Tensor | None:
    """The weight of a norm. None: of no norm, as some checkpoints have it."""
    return norm.weight if isinstance(norm, PredictorRmsNorm) else None
