"""The gates: what is measured on drawn pictures, as plain figures."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from cantata_models.sketch.training.autoencoder_training import (
    as_tensor,
    decoded_psnr,
    psnr,
    unseen_pixels,
)
from cantata_models.sketch.training.captions import Painted, get_kind, painted_pictures, shown_names
from cantata_models.sketch.training.colours import main_hue, nearest_colour
from cantata_models.sketch.training.evaluation.judge import named
from cantata_models.sketch.training.latent_code import LatentCode
from cantata_models.sketch.training.networks.autoencoder import Autoencoder
from cantata_models.sketch.training.picture_training import Drawer
from cantata_models.sketch.training.pictures import Pixels, TrainingPictures
from cantata_models.sketch.training.sampling import draw_pictures

NAMES = 160
"""Seen names to draw, evenly taken."""
PAIRS = 80
"""Pairs of colour and kind to draw, of the seen and of the held-out ones each."""


@dataclass(frozen=True)
class Reconstruction:
    """Mean PSNR in dB of the pictures that the autoencoder never saw."""

    from_code: float
    """Decoded from the latent code, as the picture network's latents are."""
    round_trip: float
    """Encoded by the encoder, then decoded."""
    pictures: int


@dataclass(frozen=True)
class PairScore:
    """How drawings of "colour kind" fare, as shares of `count`."""

    count: int
    hue: float
    """The asked colour is the nearest to the main hue."""
    kind: float
    """The judge's first name is of the asked kind."""
    kind_in_five: float


@dataclass(frozen=True)
class NameScore:
    """How drawings of seen names fare, as shares of `count`."""

    count: int
    first: float
    """The judge's first name is of the asked kind, as "heart" is of "red heart"."""
    in_five: float
    nearest: float
    """Of all real pictures, the asked one has the smallest squared difference."""
    psnr: float
    """Mean PSNR in dB between the drawing and the real picture."""


@dataclass(frozen=True)
class Neighbour:
    """A drawing and the real picture that is most like it."""

    caption: str
    name: str
    psnr: float


@torch.no_grad()
def measure_reconstruction(
    autoencoder: Autoencoder, code: LatentCode, pictures: TrainingPictures
) -> Reconstruction:
    """Measures the autoencoder on pictures kept from it."""
    unseen = unseen_pixels(pictures)
    real = as_tensor(unseen)
    ratios = psnr(autoencoder.decode(autoencoder.encode(real)), real)
    return Reconstruction(
        decoded_psnr(autoencoder, code, unseen), float(ratios.mean()), len(unseen)
    )


def evenly(count: int, wanted: int) -> list[int]:
    """Takes up to `wanted` of `count` places, evenly spread."""
    return [int(place) for place in np.linspace(0, count - 1, min(count, wanted))]


def likeness(
    drawn: Pixels, pictures: TrainingPictures
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Gives the PSNR in dB, `[n, pictures]`, of small copies of drawn and real pictures."""
    asked, known = (
        nn.functional.avg_pool2d(as_tensor(pixels), 4).flatten(1)
        for pixels in (drawn, pictures.pixels)
    )
    apart = torch.cdist(asked, known).square() / known.shape[1] / 4
    table: np.ndarray[tuple[int, int], np.dtype[np.float32]]
    table = (-10 * torch.log10(apart + 1e-10)).numpy()
    return table


def measure_names(
    drawer: Drawer, autoencoder: Autoencoder, judge: nn.Module, pictures: TrainingPictures
) -> NameScore:
    """Draws seen names and asks the judge what they are."""
    shown = shown_names(pictures)
    asked = np.array([shown[place] for place in evenly(len(shown), NAMES)])
    drawn = draw_pictures(drawer, autoencoder, [pictures.names[index] for index in asked])
    kinds = np.array([get_kind(name) for name in pictures.names])
    right = kinds[named(judge, drawn).numpy()] == kinds[asked][:, None]
    table = likeness(drawn, pictures)
    return NameScore(
        count=len(asked),
        first=float(right[:, 0].mean()),
        in_five=float(right.any(axis=1).mean()),
        nearest=float((table.argmax(axis=1) == asked).mean()),
        psnr=float(table[np.arange(len(asked)), asked].mean()),
    )


def measure_pairs(
    drawer: Drawer,
    autoencoder: Autoencoder,
    judge: nn.Module,
    pictures: TrainingPictures,
    *,
    held_out: bool,
) -> PairScore:
    """Draws pairs of colour and kind, seen or held out."""
    items = [item for item in painted_pictures(pictures) if item.held_out is held_out]
    asked = [items[place] for place in evenly(len(items), PAIRS)]
    drawn = draw_pictures(drawer, autoencoder, [item.caption for item in asked])
    hues = [nearest_colour(main_hue(picture).degrees) for picture in drawn]
    kinds = [get_kind(name) for name in pictures.names]
    found = [[kinds[index] for index in row] for row in named(judge, drawn).tolist()]
    return PairScore(
        count=len(asked),
        hue=share(hue == item.colour for hue, item in zip(hues, asked, strict=True)),
        kind=share(names[0] == item.kind for names, item in zip(found, asked, strict=True)),
        kind_in_five=share(item.kind in names for names, item in zip(found, asked, strict=True)),
    )


def judged_pairs(judge: nn.Module, pictures: TrainingPictures, items: list[Painted]) -> float:
    """Share of truly painted pictures whose kind the judge names: no drawing can be above it."""
    real = np.stack([item.draw(pictures) for item in items])
    kinds = [get_kind(pictures.names[index]) for index in named(judge, real)[:, 0].tolist()]
    return share(kind == item.kind for kind, item in zip(kinds, items, strict=True))


def share(hits: Iterable[bool]) -> float:
    """Gives the share of true values."""
    values = list(hits)
    return sum(values) / len(values)


def neighbours(
    drawer: Drawer, autoencoder: Autoencoder, pictures: TrainingPictures, captions: list[str]
) -> tuple[Pixels, list[Neighbour]]:
    """Draws captions and finds the real picture nearest to each."""
    drawn = draw_pictures(drawer, autoencoder, captions)
    table = likeness(drawn, pictures)
    best = table.argmax(axis=1)
    return drawn, [
        Neighbour(caption, pictures.names[index], float(table[row, index]))
        for row, (caption, index) in enumerate(zip(captions, best, strict=True))
    ]


def seconds_a_picture(drawer: Drawer, autoencoder: Autoencoder) -> float:
    """Measures one drawing, words to pixels, after one to warm up."""
    draw_pictures(drawer, autoencoder, ["red apple"])
    began = time.monotonic()
    draw_pictures(drawer, autoencoder, ["dog face"])
    return time.monotonic() - began
