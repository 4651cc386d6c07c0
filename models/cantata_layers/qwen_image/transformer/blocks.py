"""The denoiser's blocks and the rows of a step on their way through them.

A block is joint attention of a row's text and pictures, then an MLP for each.

Letters: L tokens of all rows, T of them text, I of pictures, D width, H heads, C columns of a head.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.row_products import RowLinear
from cantata_layers.qwen_image.config import TransformerConfig
from cantata_layers.qwen_image.transformer.modulation import Modulation, RmsNorm, layer_norm
from cantata_layers.qwen_image.transformer.packing import PackedStream, Segment, by_row
from cantata_layers.qwen_image.transformer.rotation import TokenRotation


@dataclass(frozen=True, slots=True)
class RotatedStream:
    """One of a step's two streams, with the rotation of its tokens."""

    stream: PackedStream
    rotation: TokenRotation


class JointAttention(nn.Module):
    """Attention of each row over its text and its pictures."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width, head = config.width, config.head_dim
        self.to_q, self.to_k, self.to_v = (RowLinear(width, width) for _ in range(3))
        self.add_q_proj, self.add_k_proj, self.add_v_proj = (
            RowLinear(width, width) for _ in range(3)
        )
        self.norm_q, self.norm_k = RmsNorm(head), RmsNorm(head)
        self.norm_added_q, self.norm_added_k = RmsNorm(head), RmsNorm(head)
        self.to_out = nn.ModuleList([RowLinear(width, width)])
        self.to_add_out = RowLinear(width, width)
        self._head = head

    def forward(
        self, text: torch.Tensor, image: torch.Tensor, sides: tuple[RotatedStream, RotatedStream]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """[T, D] and [I, D] -> the same shapes."""
        words, pixels = sides
        text_heads = (
            words.rotation(self.norm_added_q(self._split(self.add_q_proj(text)))),
            words.rotation(self.norm_added_k(self._split(self.add_k_proj(text)))),
            self._split(self.add_v_proj(text)),
        )
        image_heads = (
            pixels.rotation(self.norm_q(self._split(self.to_q(image)))),
            pixels.rotation(self.norm_k(self._split(self.to_k(image)))),
            self._split(self.to_v(image)),
        )
        texts = [by_row(heads, words.stream.lengths) for heads in text_heads]
        images = [by_row(heads, pixels.stream.lengths) for heads in image_heads]
        output = [
            _attend(*(torch.cat([texts[i][row], images[i][row]]) for i in range(3)))
            for row in range(len(words.stream.lengths))
        ]
        of_text = [m[:n] for m, n in zip(output, words.stream.lengths, strict=True)]
        of_image = [m[n:] for m, n in zip(output, words.stream.lengths, strict=True)]
        return self.to_add_out(torch.cat(of_text)), self.to_out[0](torch.cat(of_image))

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        """[L, D] -> [L, H, C]."""
        return x.reshape(len(x), -1, self._head)


class FirstLayer(nn.Module):
    """Holds an MLP's first layer under its published name."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.proj = RowLinear(width, inner)


class Mlp(nn.Module):
    """[L, D] -> [L, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        first, last = FirstLayer(width, 4 * width), RowLinear(4 * width, width)
        # Between them the published modules have a dropout, which has no weights.
        self.net = nn.ModuleList([first, nn.Identity(), last])

    def forward(self, x: torch.Tensor, stream: PackedStream) -> torch.Tensor:
        first, last = self.net[0], self.net[2]
        assert isinstance(first, FirstLayer)
        return torch.as_tensor(last(stream.gelu(first.proj(x))))


class TransformerBlock(nn.Module):
    """One layer. Its modulations come from outside."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.attn = JointAttention(config)
        self.img_mlp = Mlp(config.width)
        self.txt_mlp = Mlp(config.width)

    def forward(
        self,
        text: torch.Tensor,
        image: torch.Tensor,
        sides: tuple[RotatedStream, RotatedStream],
        modulations: tuple[Sequence[torch.Tensor], Sequence[torch.Tensor]],
    ) -> None:
        """Change [T, D] and [I, D] in place.

        Args:
            text: of all rows, as the next.
            sides: of text and pictures, as the next.
            modulations: [6, D] by index of a segment's modulation.
        """
        words, pixels = (side.stream for side in sides)
        of_text, of_image = (list(zip(*m, strict=True)) for m in modulations)
        received, seen = self.attn(
            words.modulated(layer_norm(text), of_text[0], of_text[1]),
            pixels.modulated(layer_norm(image), of_image[0], of_image[1]),
            sides,
        )
        words.add(text, of_text[2], received)
        pixels.add(image, of_image[2], seen)
        normed = words.modulated(layer_norm(text), of_text[3], of_text[4])
        words.add(text, of_text[5], self.txt_mlp(normed, words))
        normed = pixels.modulated(layer_norm(image), of_image[3], of_image[4])
        pixels.add(image, of_image[5], self.img_mlp(normed, pixels))


def _attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """[L, H, C] each, of one row -> [L, H * C]."""
    q, k, v = (x.transpose(0, 1)[None] for x in (query, key, value))
    return functional.scaled_dot_product_attention(q, k, v)[0].transpose(0, 1).flatten(1)


@dataclass(frozen=True, slots=True)
class StreamLayout:
    """The layout of one of a row's two streams."""

    segments: tuple[Segment, ...]
    rotation: TokenRotation


class BlockStack:
    """Hidden states of some rows, which blocks change in place.

    Args:
        places: of each row's text and pictures.
        text: [T, D] of all rows.
        image: [I, D] of all rows.
    """

    def __init__(
        self,
        blocks: Sequence[TransformerBlock],
        modulations: Sequence[Modulation],
        places: Sequence[tuple[StreamLayout, StreamLayout]],
        text: torch.Tensor,
        image: torch.Tensor,
    ) -> None:
        self._blocks, self._modulations, self._places = blocks, modulations, places
        self._text, self._image = text, image
        self._words, self._pixels = (
            _rotate_side([pair[index] for pair in places]) for index in (0, 1)
        )

    @property
    def blocks(self) -> int:
        return len(self._blocks)

    @property
    def texts(self) -> Sequence[torch.Tensor]:
        """Views [T, D], one for each row."""
        return by_row(self._text, self._words.stream.lengths)

    @property
    def images(self) -> Sequence[torch.Tensor]:
        """Views [I, D], one for each row."""
        return by_row(self._image, self._pixels.stream.lengths)

    def run(self, numbers: Iterable[int]) -> None:
        """Through some blocks."""
        for number in numbers:
            of_text = [modulation.text[number] for modulation in self._modulations]
            of_image = [modulation.image[number] for modulation in self._modulations]
            sides = self._words, self._pixels
            self._blocks[number](self._text, self._image, sides, (of_text, of_image))

    def first_inputs(self) -> Sequence[torch.Tensor]:
        """[I, D] for each row: pictures as the first block's attention reads them."""
        shifts = [modulation.image[0][0] for modulation in self._modulations]
        scales = [modulation.image[0][1] for modulation in self._modulations]
        stream = self._pixels.stream
        return by_row(stream.modulated(layer_norm(self._image), shifts, scales), stream.lengths)

    def run_some(self, rows: Sequence[int], numbers: Iterable[int]) -> None:
        """Some rows through some blocks; the others stay as they are."""
        if len(rows) == len(self._places):
            self.run(numbers)
            return
        if not rows:
            return
        texts, images = self.texts, self.images
        part = BlockStack(
            self._blocks,
            self._modulations,
            [self._places[row] for row in rows],
            torch.cat([texts[row] for row in rows]),
            torch.cat([images[row] for row in rows]),
        )
        part.run(numbers)
        for row, text, image in zip(rows, part.texts, part.images, strict=True):
            texts[row].copy_(text)
            images[row].copy_(image)


def _rotate_side(places: Sequence[StreamLayout]) -> RotatedStream:
    rotation = TokenRotation.join([place.rotation for place in places])
    return RotatedStream(PackedStream.of([place.segments for place in places]), rotation)
