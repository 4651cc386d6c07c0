"""Teaches the text encoder what a caption looks like, before any drawing.

From the states of the prompt's closing tokens, which have seen the whole caption, a linear head
foretells the latents: of a caption with one picture that picture, of an ambiguous one the mean.
This costs little, for there are no picture tokens, and the picture network then begins with words
that already tell a heart from a house. The head is thrown away.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from cantata_layers.training.loop import LEVEL_FIRST, TrainingLoop, make_adamw
from cantata_models.sketch.training.examples import Examples
from cantata_models.sketch.training.picture_training import Drawer
from cantata_models.sketch.training.text_encoder import WIDTH
from cantata_models.sketch.training.words import CLOSING

BATCH = 256
RATE = 3e-3


class Foreteller(nn.Module):
    """The text encoder of a drawer under a linear head."""

    def __init__(self, drawer: Drawer, values: int) -> None:
        super().__init__()
        self.drawer = drawer
        self.text_encoder = drawer.text_encoder
        self.head = nn.Linear(CLOSING * WIDTH, values)

    def forward(self, captions: list[str]) -> Tensor:
        """Gives `[n, values]`."""
        states, mask = self.drawer.text(captions)
        places = mask.sum(dim=1, keepdim=True) - CLOSING + torch.arange(CLOSING)
        closing = states.gather(1, places[..., None].expand(-1, -1, states.shape[-1]))
        foretold: Tensor = self.head(closing.flatten(1))
        return foretold


def train_foreteller(drawer: Drawer, examples: Examples, path: Path, minutes: float) -> None:
    """Trains the drawer's text encoder in place until the budget is spent."""
    foreteller = Foreteller(drawer, examples.named_latents[0].size)
    learned = [*foreteller.text_encoder.parameters(), *foreteller.head.parameters()]
    optimizer = make_adamw(learned, RATE, weight_decay=0.0)
    parts = {"network": foreteller}
    loop = TrainingLoop(path, parts, [optimizer], minutes, LEVEL_FIRST, averaged=foreteller)
    dice = np.random.default_rng(loop.progress.step)

    def loss(_: int) -> tuple[Tensor, dict[str, float]]:
        latents, captions = examples.draw(BATCH, dice)
        value = functional.mse_loss(foreteller(captions), latents.flatten(1))
        return value, {"loss": float(value.detach())}

    loop.run(loss)


def read_text_encoder(drawer: Drawer, path: Path) -> None:
    """Fills the drawer's text encoder with the averaged weights of a training stored at `path`."""
    average: dict[str, Tensor] = torch.load(path, weights_only=True)["average"]
    prefix = "text_encoder."
    drawer.text_encoder.load_state_dict(
        {
            name.removeprefix(prefix): value
            for name, value in average.items()
            if name.startswith(prefix)
        }
    )
