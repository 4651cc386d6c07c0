"""Latents and captions in the proportions that the picture network learns them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cantata_models.sketch.training.captions import (
    Painted,
    draw_caption,
    dressed,
    painted_pictures,
    shown_names,
)
from cantata_models.sketch.training.latent_code import Floats, LatentCode
from cantata_models.sketch.training.pictures import TrainingPictures

PAINTED_SHARE = 0.4
"""Of a batch, pictures with a colour word."""
EMPTY_SHARE = 0.1
"""Of a batch, pictures with an empty caption, for guidance."""
EMPTY = " "
"""The published pipeline's negative prompt where a caller gives none."""
CAPITALISED = 2
"""Of ten captions, those that the vocabulary counts with a capital."""


@dataclass(frozen=True)
class Examples:
    """What a batch is drawn from."""

    pictures: TrainingPictures
    named: list[int]
    """The pictures to show under their own names."""
    painted: list[Painted]
    """The pairs of colour and kind to show."""
    named_latents: Floats
    """`[pictures, 16, 16, 16]`"""
    painted_latents: Floats
    """`[painted, 16, 16, 16]`"""

    def draw(self, size: int, dice: np.random.Generator) -> tuple[Tensor, list[str]]:
        """Draws latents `[size, 16, 16, 16]` and a caption for each."""
        latents, captions = [], []
        for _ in range(size):
            latent, caption = self._draw_one(dice)
            latents.append(latent)
            captions.append(EMPTY if dice.random() < EMPTY_SHARE else caption)
        return torch.from_numpy(np.stack(latents)), captions

    def _draw_one(self, dice: np.random.Generator) -> tuple[Floats, str]:
        if dice.random() < PAINTED_SHARE:
            place = int(dice.integers(len(self.painted)))
            return self.painted_latents[place], dressed(self.painted[place].caption, dice)
        index = self.named[dice.integers(len(self.named))]
        words = self.pictures.keywords[index]
        return self.named_latents[index], draw_caption(self.pictures.names[index], words, dice)


def make_examples(pictures: TrainingPictures, code: LatentCode) -> Examples:
    """Paints and encodes every picture that may be shown."""
    painted = [item for item in painted_pictures(pictures) if not item.held_out]
    latents = [code.encode(item.draw(pictures)[None])[0] for item in painted]
    return Examples(
        pictures, shown_names(pictures), painted, code.encode(pictures.pixels), np.stack(latents)
    )


def vocabulary_corpus(pictures: TrainingPictures) -> list[str]:
    """Lists all captions, about as often as a training shows them."""
    corpus: list[str] = []
    for name, keywords in zip(pictures.names, pictures.keywords, strict=True):
        corpus += [name] * (10 - CAPITALISED) + [name.capitalize()] * CAPITALISED + keywords
    for item in painted_pictures(pictures):
        corpus += [item.caption, item.caption, item.caption.capitalize()]
    return corpus + ["a", "an", "A", "An", "the", "The", "of", "and", "with"] * 50
