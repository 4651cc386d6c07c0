"""The language model, a mixture of transformers: one attention, two sets of weights by token.

Words, the tokens of pictures that are seen and the marks around a picture take the plain weights;
latents take those for drawing. Source: `forward_inference` of `Qwen2MoTDecoderLayer` in the
publisher's qwen2_navit.py.

A span is what one context is asked about in one forward. All spans of a forward are packed: their
products run over all tokens, attention by span.

Letters: L tokens, M plain tokens of a span, N drawn ones, D width, H heads, K key heads, C columns
of a head, F = C / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.model.row_products import RowLinear
from cantata_layers.qwen_image.transformer.modulation import RmsNorm
from cantata_layers.qwen_image.transformer.packing import by_row
from cantata_models.bagel.config import LanguageConfig


@dataclass(frozen=True, slots=True)
class SequenceRotation:
    """[L, 1, F] float32 cosines and sines."""

    cos: torch.Tensor
    sin: torch.Tensor

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[L, H, C] -> the same shape and dtype, turned in float32."""
        low, high = x.float().chunk(2, dim=-1)
        turned = (low * self.cos - high * self.sin, high * self.cos + low * self.sin)
        return torch.cat(turned, dim=-1).to(x.dtype)

    @classmethod
    def join(cls, parts: Sequence[SequenceRotation]) -> SequenceRotation:
        """The rotation for the tokens of all parts; at least one part."""
        if len(parts) == 1:
            return parts[0]
        return cls(torch.cat([p.cos for p in parts]), torch.cat([p.sin for p in parts]))


class Rotations:
    def __init__(self, head: int, theta: float, device: torch.device) -> None:
        exponents = torch.arange(0, head, 2, device=device).float() / head
        self._frequencies = 1.0 / theta**exponents

    def line(self, first: int, tokens: int) -> SequenceRotation:
        """The rotation for tokens one after the other."""
        places = torch.arange(first, first + tokens, device=self._frequencies.device)
        return self._at(places)

    def point(self, place: int, tokens: int) -> SequenceRotation:
        """The rotation for tokens at the same position."""
        at = self._at(torch.full((1,), place, device=self._frequencies.device))
        # WHY expanded: a cosine's bits may depend on how many are computed with it.
        return SequenceRotation(at.cos.expand(tokens, -1, -1), at.sin.expand(tokens, -1, -1))

    def _at(self, places: torch.Tensor) -> SequenceRotation:
        angles = (places.float()[:, None] * self._frequencies)[:, None]
        return SequenceRotation(angles.cos(), angles.sin())


Heads = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Queries [L, H, C], keys and values [L, K, C]."""


class ExpertAttention(nn.Module):
    """Projections around attention, under their published names."""

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        keys = config.key_heads * config.head
        self.q_proj = RowLinear(config.width, config.width)
        self.k_proj = RowLinear(config.width, keys)
        self.v_proj = RowLinear(config.width, keys)
        self.o_proj = RowLinear(config.width, config.width, bias=False)
        self.q_norm, self.k_norm = RmsNorm(config.head), RmsNorm(config.head)
        self._head = config.head

    def heads(self, x: torch.Tensor, rotation: SequenceRotation) -> Heads:
        """Queries, keys and values of [L, D]."""
        queries, keys, values = (
            projection(x).view(len(x), projection.out_features // self._head, self._head)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        return rotation(self.q_norm(queries)), rotation(self.k_norm(keys)), values


class ExpertMlp(nn.Module):
    """A gated MLP."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = (RowLinear(width, inner, bias=False) for _ in range(2))
        self.down_proj = RowLinear(inner, width, bias=False)

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """[L, D] -> [L, D]. `lengths`: tokens of each row.

        WHY by row: the activation's kernel treats the last elements of a tensor in another way.
        """
        gates = torch.cat([functional.silu(part) for part in by_row(self.gate_proj(x), lengths)])
        return torch.as_tensor(self.down_proj(gates * self.up_proj(x)))


class ExpertLayer(nn.Module):
    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.self_attn = ExpertAttention(config)
        self.mlp = ExpertMlp(config.width, config.inner)
        self.input_layernorm, self.post_attention_layernorm = (
            RmsNorm(config.width) for _ in range(2)
        )

    def heads(self, x: torch.Tensor, rotation: SequenceRotation) -> Heads:
        """Queries, keys and values of [L, D], before attention."""
        return self.self_attn.heads(self.input_layernorm(x), rotation)

    def after(
        self, x: torch.Tensor, attended: torch.Tensor, lengths: Sequence[int]
    ) -> torch.Tensor:
        """[L, D] of the layer's input and of what attention made -> [L, D]."""
        x = x + self.self_attn.o_proj(attended)
        return x + torch.as_tensor(self.mlp(self.post_attention_layernorm(x), lengths))


class Expert(nn.Module):
    """All layers of one set, and its last norm."""

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(ExpertLayer(config) for _ in range(config.layers))
        self.norm = RmsNorm(config.width)

    def layer(self, index: int) -> ExpertLayer:
        found = self.layers[index]
        assert isinstance(found, ExpertLayer)
        return found


KeysValues = tuple[torch.Tensor, torch.Tensor]
"""[T, K, C] each, of one layer."""


@dataclass(frozen=True, slots=True)
class BagelBlock:
    """Neighbouring tokens that were computed together."""

    layers: Sequence[KeysValues]

    @property
    def tokens(self) -> int:
        """T."""
        return len(self.layers[0][0])

    @classmethod
    def join(cls, first: BagelBlock, second: BagelBlock) -> BagelBlock:
        pairs = zip(first.layers, second.layers, strict=True)
        return cls([(torch.cat([k, k2]), torch.cat([v, v2])) for (k, v), (k2, v2) in pairs])


@dataclass(frozen=True, slots=True)
class Context:
    """All tokens up to here."""

    blocks: tuple[BagelBlock, ...] = ()
    position: int = 0
    """Of the next token. All tokens of a picture have the same one."""

    @property
    def tokens(self) -> int:
        return sum(block.tokens for block in self.blocks)

    def and_(self, block: BagelBlock, positions: int) -> Context:
        """This context with one more block, which takes up so many positions."""
        return Context((*self.blocks, block), self.position + positions)

    def size(self, tokens: int) -> ForwardSize:
        """The size of a forward of so many tokens behind this context."""
        return ForwardSize(tokens, tokens * (self.tokens + tokens))

    def before(self, layer: int, new: KeysValues) -> KeysValues:
        """Keys and values of a layer: the context's, then the new ones."""
        if not self.blocks:
            return new
        keys, values = zip(*chain((b.layers[layer] for b in self.blocks), (new,)), strict=True)
        return torch.cat(keys), torch.cat(values)


@dataclass(frozen=True, slots=True)
class Span:
    """New tokens behind a context."""

    context: Context
    plain: torch.Tensor
    """[M, D]; M may be 0."""
    drawn: torch.Tensor
    """[N, D]; N may be 0."""
    plain_rotation: SequenceRotation
    drawn_rotation: SequenceRotation
    causal: bool
    """Whether tokens see only those before them; there are no drawn ones then. Otherwise all see
    each other."""

    @property
    def tokens(self) -> int:
        """M + N."""
        return len(self.plain) + len(self.drawn)


@dataclass(frozen=True, slots=True)
class ForwardOutput:
    """A span behind the last layer."""

    plain: torch.Tensor
    """[M, D], normed, as the next."""
    drawn: torch.Tensor
    """[N, D]"""
    block: BagelBlock
    """Keys and values of its tokens."""


class Mixture(nn.Module):
    """Both sets of weights."""

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.plain, self.drawn = Expert(config), Expert(config)
        self._layers = config.layers

    def forward(self, spans: Sequence[Span]) -> list[ForwardOutput]:
        """Pass spans through all layers. In float32 on a CPU a span's result does not depend on
        the others."""
        streams = _ExpertTokens.of_both(self, spans)
        kept: list[list[KeysValues]] = [[] for _ in spans]
        for index in range(self._layers):
            heads = [stream.heads(index) for stream in streams]
            attended = []
            for number, span in enumerate(spans):
                query, key, value = (
                    torch.cat([side[number][part] for side in heads]) for part in range(3)
                )
                kept[number].append((key, value))
                attended.append(_attend(query, span, span.context.before(index, (key, value))))
            cuts = [len(span.plain) for span in spans]
            parts = zip(attended, cuts, strict=True)
            first, last = zip(*((output[:cut], output[cut:]) for output, cut in parts), strict=True)
            for stream, output in zip(streams, (first, last), strict=True):
                stream.advance(index, torch.cat(output))
        plain, drawn = (stream.normed() for stream in streams)
        made_of = zip(plain, drawn, kept, strict=True)
        return [
            ForwardOutput(words, latents, BagelBlock(layers)) for words, latents, layers in made_of
        ]


class _ExpertTokens:
    """The tokens of all spans that take the same weights."""

    def __init__(
        self, expert: Expert, parts: Sequence[torch.Tensor], rotations: Sequence[SequenceRotation]
    ) -> None:
        self._expert, self._x = expert, torch.cat(list(parts))
        self._lengths = [len(part) for part in parts]
        self._rotation = SequenceRotation.join(rotations)

    @classmethod
    def of_both(
        cls, mixture: Mixture, spans: Sequence[Span]
    ) -> tuple[_ExpertTokens, _ExpertTokens]:
        return (
            cls(mixture.plain, [s.plain for s in spans], [s.plain_rotation for s in spans]),
            cls(mixture.drawn, [s.drawn for s in spans], [s.drawn_rotation for s in spans]),
        )

    def heads(self, index: int) -> list[Heads]:
        """Of each span."""
        output = self._expert.layer(index).heads(self._x, self._rotation)
        queries, keys, values = (by_row(part, self._lengths) for part in output)
        return list(zip(queries, keys, values, strict=True))

    def advance(self, index: int, attended: torch.Tensor) -> None:
        self._x = self._expert.layer(index).after(self._x, attended, self._lengths)

    def normed(self) -> Sequence[torch.Tensor]:
        return by_row(self._expert.norm(self._x), self._lengths)


def _attend(query: torch.Tensor, span: Span, before: KeysValues) -> torch.Tensor:
    """[M + N, H, C] -> [M + N, H * C]."""
    keys, values = before
    groups = query.shape[1] // keys.shape[1]
    q = query.transpose(0, 1)[None]
    k, v = (x.repeat_interleave(groups, dim=1).transpose(0, 1)[None] for x in (keys, values))
    mask = None
    if span.causal and len(query) > 1:
        mask = torch.ones(len(query), len(keys), dtype=torch.bool, device=query.device)
        mask = mask.tril(len(keys) - len(query))
    output = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return output[0].transpose(0, 1).flatten(1)
