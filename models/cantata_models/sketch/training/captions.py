"""What a picture may be called: its name, its keywords, and the colour words of painted ones."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from cantata_models.sketch.training.colours import (
    HUES,
    PAINTABLE,
    Hue,
    main_hue,
    nearest_colour,
    paint,
)
from cantata_models.sketch.training.pictures import Pixels, TrainingPictures

COLOUR_WORDS = frozenset(HUES) | {"black", "white", "brown", "grey", "gray"}
HELD_OUT_IN = 24
"""One pair of this many, of a colour and a kind, is never shown."""
HELD_OUT = frozenset({("green", "heart"), ("purple", "dog face"), ("blue", "rose")})
"""Never shown either."""
MAX_WORDS = 9


@dataclass(frozen=True)
class Painted:
    """One picture in one colour: `picture` is an index into the pictures."""

    picture: int
    kind: str
    colour: str
    main: Hue

    @property
    def caption(self) -> str:
        """Colour and kind, as a person would ask for it."""
        return f"{self.colour} {self.kind}"

    @property
    def held_out(self) -> bool:
        """Whether the pair is kept for the gate on hues."""
        return is_held_out(self.colour, self.kind)

    def draw(self, pictures: TrainingPictures) -> Pixels:
        """Gives `[h, w, 3]` uint8; untouched if the picture has the colour already."""
        pixels: Pixels = pictures.pixels[self.picture]
        if nearest_colour(self.main.degrees) == self.colour:
            return pixels
        return paint(pixels, self.main, self.colour)


def is_held_out(colour: str, kind: str) -> bool:
    """Tells whether a pair of colour and kind is never shown in training."""
    chance = zlib.crc32(f"{colour}/{kind}".encode()) % HELD_OUT_IN == 0
    return chance or (colour, kind) in HELD_OUT


def get_kind(name: str) -> str:
    """Strips colour words: "green heart" is a "heart"."""
    return " ".join(word for word in name.split() if word not in COLOUR_WORDS)


def named_pair(name: str) -> tuple[str, str] | None:
    """Splits a name that begins with a colour of the circle: "green heart"."""
    first, _, rest = name.partition(" ")
    return (first, rest) if first in HUES and rest else None


def shown_names(pictures: TrainingPictures) -> list[int]:
    """Gives the pictures whose own names may be shown: all but held-out pairs."""
    pairs = map(named_pair, pictures.names)
    return [index for index, pair in enumerate(pairs) if not (pair and is_held_out(*pair))]


def painted_pictures(pictures: TrainingPictures) -> list[Painted]:
    """Lists every picture of one main hue in every colour, held-out pairs too.

    Of several pictures of one kind, as the hearts, only the first is painted.
    """
    found: dict[str, list[Painted]] = {}
    for index, name in enumerate(pictures.names):
        kind, main = get_kind(name), main_hue(pictures.pixels[index])
        if kind and kind not in found and main.share > PAINTABLE:
            found[kind] = [Painted(index, kind, colour, main) for colour in HUES]
    return [item for items in found.values() for item in items]


def draw_caption(name: str, keywords: list[str], dice: np.random.Generator) -> str:
    """Draws one of a picture's captions: mostly its name."""
    if keywords and dice.random() < 0.2:
        return str(dice.choice(keywords))
    return dressed(name, dice)


def dressed(name: str, dice: np.random.Generator) -> str:
    """Writes a name as people do: plain, with an article, with a capital."""
    if dice.random() < 0.15:
        name = f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
    if dice.random() < 0.12:
        name = name.capitalize()
    return name
