"""The mixture of transformers: one attention over all tokens, two sets of weights by token.

Words, the tokens of pictures that are seen and the marks around a picture take the plain weights;
latents take those for drawing. Source: `forward_inference` of `Qwen2MoTDecoderLayer` in the
publisher's qwen2_navit.py.

A span is what one context is asked about in one forward. All spans of a forward are packed: their
products run over all tokens, attention by span.

Letters: M plain tokens of a span, N drawn ones, D width, H heads, K key heads, C columns of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from cantata_layers.qwen_image.transformer.packing import by_row
from cantata_models.bagel.config import LanguageConfig
from cantata_models.bagel.network.context import BagelBlock, Context, KeysValues
from cantata_models.bagel.network.expert import Expert, Heads
from cantata_models.bagel.network.rotation import Rotation


@dataclass(frozen=True, slots=True)
class Span:
    """New tokens behind a context."""

    context: Context
    plain: torch.Tensor
    """[M, D]; M may be 0."""
    drawn: torch.Tensor
    """[N, D]; N may be 0."""
    plain_rotation: Rotation
    drawn_rotation: Rotation
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
    """Both sets of weights.

    Args:
        config: sizes.
    """

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.plain, self.drawn = Expert(config), Expert(config)
        self._layers = config.layers

    def forward(self, spans: Sequence[Span]) -> list[ForwardOutput]:
        """Pass spans through all layers. In float32 on a CPU a span's result does not depend on
        the others."""
        streams = _Stream.of_both(self, spans)
        kept: list[list[KeysValues]] = [[] for _ in spans]
        for index in range(self._layers):
            heads = [stream.heads(index) for stream in streams]
            attended = []
            for number, span in enumerate(spans):
                query, key, value = (
                    torch.cat([side[number][part] for side in heads]) for part in range(3)
                )
                kept[number].append((key, value))
                attended.append(_attended(query, span, span.context.before(index, (key, value))))
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


class _Stream:
    """The tokens of all spans that take the same weights."""

    def __init__(
        self, expert: Expert, parts: Sequence[torch.Tensor], rotations: Sequence[Rotation]
    ) -> None:
        self._expert, self._x = expert, torch.cat(list(parts))
        self._lengths = [len(part) for part in parts]
        self._rotation = Rotation.join(rotations)

    @classmethod
    def of_both(cls, mixture: Mixture, spans: Sequence[Span]) -> tuple[_Stream, _Stream]:
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


def _attended(query: torch.Tensor, span: Span, before: KeysValues) -> torch.Tensor:
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
