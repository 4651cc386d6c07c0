"""The rows of a step on their way through the blocks.

Letters: T text tokens, I tokens of pictures (noise and references), D width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from cantata_layers.qwen_image.transformer.block import Block, Side
from cantata_layers.qwen_image.transformer.modulation import Modulation, layer_norm
from cantata_layers.qwen_image.transformer.packing import Segment, Stream, by_row
from cantata_layers.qwen_image.transformer.rotation import Rotation


@dataclass(frozen=True, slots=True)
class StreamLayout:
    """One of a row's two streams."""

    segments: tuple[Segment, ...]
    rotation: Rotation


class BlockStack:
    """Hidden states of some rows, which blocks change in place.

    Args:
        blocks: all of the network's.
        modulations: that segments point to.
        places: of each row's text and pictures.
        text: [T, D] of all rows.
        image: [I, D] of all rows.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        modulations: Sequence[Modulation],
        places: Sequence[tuple[StreamLayout, StreamLayout]],
        text: torch.Tensor,
        image: torch.Tensor,
    ) -> None:
        self._blocks, self._modulations, self._places = blocks, modulations, places
        self._text, self._image = text, image
        self._words, self._pixels = (_side([pair[index] for pair in places]) for index in (0, 1))

    @property
    def blocks(self) -> int:
        """Of the network."""
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


def _side(places: Sequence[StreamLayout]) -> Side:
    rotation = Rotation.join([place.rotation for place in places])
    return Side(Stream.of([place.segments for place in places]), rotation)
