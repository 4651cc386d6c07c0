"""Emoji drawn from the font and named by CLDR: the pictures the model learns from."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from cantata_models.sketch.training.packages import Sources

SIDE = 128
"""Side of a picture in pixels."""
STRIKE = 109
"""The one size in which the font holds bitmaps, of 136 x 128 pixels."""
STRIKE_WIDTH, STRIKE_HEIGHT = 136, 128
MAX_NAME = 2
"""Words of a name that people would ask for."""
FIRST_SYMBOL = 0x203C
"""Below are digits and punctuation."""
UNTOLD = re.compile(r"Japanese|skin tone|regional|dotted circle")
"""Names of signs that no words describe: what stands on a button, parts of sequences."""

EVERYDAY = (
    (0x2615, 0x2615),  # hot beverage
    (0x26F5, 0x26F5),
    (0x2708, 0x2708),  # airplane
    (0x1F3E0, 0x1F3E1),  # houses
    (0x1F3F0, 0x1F3F0),  # castle
    (0x1F4F7, 0x1F4F7),
    (0x1F511, 0x1F514),  # key, locks, bell
    (0x1F6B2, 0x1F6B2),  # bicycle
    (0x2600, 0x2604),  # sun, cloud, umbrella, snowman, comet
    (0x26BD, 0x26C4),
    (0x2764, 0x2764),  # the red heart
    (0x2B50, 0x2B50),
    (0x1F308, 0x1F320),  # rainbow, moons, stars
    (0x1F330, 0x1F393),  # plants, food, celebrations
    (0x1F3A0, 0x1F3C0),  # music, games
    (0x1F400, 0x1F440),  # animals
    (0x1F451, 0x1F452),
    (0x1F47B, 0x1F47F),  # ghost, alien, devil, skull
    (0x1F48E, 0x1F48E),
    (0x1F493, 0x1F49F),  # hearts
    (0x1F4A1, 0x1F4A9),
    (0x1F4D5, 0x1F4DA),  # books
    (0x1F525, 0x1F52E),  # fire, torch, hammer, crystal ball
    (0x1F534, 0x1F537),  # circles, diamonds
    (0x1F5A4, 0x1F5A4),
    (0x1F600, 0x1F644),  # faces
    (0x1F680, 0x1F6A4),  # vehicles
    (0x1F6F4, 0x1F6FC),
    (0x1F7E0, 0x1F7EB),  # circles, squares
    (0x1F90D, 0x1F90E),
    (0x1F910, 0x1F917),
    (0x1F920, 0x1F92F),
    (0x1F940, 0x1F97F),  # sport, food, faces
    (0x1F980, 0x1F9AE),  # animals
    (0x1F9C0, 0x1F9CB),
    (0x1F9E0, 0x1F9E2),
    (0x1FAB0, 0x1FABA),
    (0x1FAD0, 0x1FADB),
)
"""Ranges of code points, ends included, that people ask for: things, plants, animals, faces."""

Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class TrainingPictures:
    """Pictures `[n, 128, 128, 3]` uint8 on white, each with a name and further words for it."""

    pixels: Pixels
    names: list[str]
    keywords: list[list[str]]
    symbols: list[str]
    """The code point of each."""

    def everyday(self) -> TrainingPictures:
        """Leaves out signs, buttons, gestures, people at their work, and all with long names."""
        named = enumerate(zip(self.symbols, self.names, strict=True))
        kept = [place for place, (symbol, name) in named if is_everyday(symbol, name)]
        return TrainingPictures(
            self.pixels[kept],
            [self.names[place] for place in kept],
            [self.keywords[place] for place in kept],
            [self.symbols[place] for place in kept],
        )

    def save(self, path: Path) -> None:
        """Writes one `.npz` file; an interruption leaves an older one whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npz")
        words = json.dumps([self.names, self.keywords, self.symbols])
        np.savez_compressed(part, pixels=self.pixels, words=np.array(words))
        part.replace(path)

    @staticmethod
    def load(path: Path) -> TrainingPictures:
        """Reads what `save` wrote."""
        with np.load(path) as stored:
            words = json.loads(str(stored["words"]))
            return TrainingPictures(stored["pixels"], *words)


def read_annotations(path: Path) -> dict[str, tuple[str, list[str]]]:
    """Reads CLDR's annotations: for each text its name and its keywords."""
    names: dict[str, str] = {}
    keywords: dict[str, list[str]] = {}
    for element in ElementTree.parse(path).getroot().iter("annotation"):
        symbol, text = element.get("cp", ""), element.text or ""
        if element.get("type") == "tts":
            names[symbol] = text
        else:
            keywords[symbol] = [word.strip() for word in text.split("|")]
    return {symbol: (name, keywords.get(symbol, [])) for symbol, name in names.items()}


def is_everyday(symbol: str, name: str) -> bool:
    """Tells whether the picture network learns a code point of this name."""
    asked_for = any(first <= ord(symbol) <= last for first, last in EVERYDAY)
    return asked_for and len(name.split()) <= MAX_NAME


def plain_name(name: str) -> str:
    """Writes a name in lower case letters, digits, spaces and hyphens."""
    return " ".join(re.sub(r"[^a-z0-9' -]", " ", name.lower().replace("\u2019", "'")).split())


def draw_pictures(sources: Sources) -> TrainingPictures:
    """Draws every emoji of one code point that the font has in colour and CLDR has a name for."""
    font = ImageFont.truetype(str(sources.font), STRIKE)
    pixels, names, keywords, symbols = [], [], [], []
    for symbol, (name, words) in sorted(read_annotations(sources.annotations).items()):
        if len(symbol) != 1 or ord(symbol) < FIRST_SYMBOL or UNTOLD.search(name):
            continue
        picture = draw_symbol(symbol, font)
        if picture is None or plain_name(name) in names:
            continue
        pixels.append(picture)
        symbols.append(symbol)
        names.append(plain_name(name))
        keywords.append([word for word in map(plain_name, words) if word])
    return TrainingPictures(np.stack(pixels), names, keywords, symbols)


def draw_symbol(symbol: str, font: ImageFont.FreeTypeFont) -> Pixels | None:
    """Draws one emoji on white, `[128, 128, 3]`; None if the font has no picture of it."""
    layer = Image.new("RGBA", (STRIKE_WIDTH, STRIKE_HEIGHT), (255, 255, 255, 0))
    ImageDraw.Draw(layer).text((0, 0), symbol, font=font, embedded_color=True)
    if layer.getbbox() is None:
        return None
    sheet = Image.new("RGBA", (STRIKE_WIDTH, STRIKE_WIDTH), "white")
    sheet.alpha_composite(layer, (0, (STRIKE_WIDTH - STRIKE_HEIGHT) // 2))
    small = sheet.convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    return np.asarray(small, dtype=np.uint8)
