"""Colour words: which hue a picture has, and pictures painted in another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from cantata_models.sketch.training.pictures import Pixels

HUES = {
    "red": 2.0,
    "orange": 28.0,
    "yellow": 48.0,
    "green": 125.0,
    "blue": 212.0,
    "purple": 275.0,
    "pink": 325.0,
}
"""Degrees on the colour circle."""
NEAR = 35.0
"""A picture's main hue reaches this far to both sides, in degrees."""
BINS = 72
VIVID, LIT = 0.3, 0.25
"""A pixel has a hue from this saturation and brightness on."""
PAINTABLE = 0.5
"""Share of the drawn pixels that must have the main hue for a picture to be painted anew."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Hue:
    """A picture's main hue in degrees and the share of the drawn pixels that have it."""

    degrees: float
    share: float


def to_hsv(pixels: Pixels) -> Floats:
    """Maps `[h, w, 3]` uint8 to hue in degrees, saturation and brightness in 0..1."""
    hsv = np.asarray(Image.fromarray(pixels).convert("HSV"), dtype=np.float32)
    return hsv * np.array([360 / 256, 1 / 255, 1 / 255], dtype=np.float32)


def apart(hue: Floats | float, degrees: float) -> Floats:
    """Gives the distance on the circle, in degrees."""
    distance: Floats = np.abs((np.asarray(hue) - degrees + 180) % 360 - 180)
    return distance


def main_hue(pixels: Pixels) -> Hue:
    """Finds the hue that most vivid pixels of `[h, w, 3]` uint8 are near."""
    hsv = to_hsv(pixels)
    drawn = (pixels < 245).any(axis=-1)
    vivid = drawn & (hsv[..., 1] > VIVID) & (hsv[..., 2] > LIT)
    hues = hsv[..., 0][vivid]
    counts, _ = np.histogram(hues, bins=BINS, range=(0, 360))
    reach = int(NEAR * BINS / 360) - 1
    around = sum(np.roll(counts, step) for step in range(-reach, reach + 1))
    degrees = (float(np.argmax(around)) + 0.5) * 360 / BINS
    # The fullest range may lie to one side of its pixels: their mean is its middle.
    for _ in range(2):
        near = hues[apart(hues, degrees) < NEAR]
        if not len(near):
            return Hue(0.0, 0.0)
        degrees = float(np.degrees(np.angle(np.exp(1j * np.radians(near)).mean()))) % 360
    return Hue(degrees, float(len(near) / drawn.sum()))


def nearest_colour(degrees: float) -> str:
    """Names a hue."""
    return min(HUES, key=lambda word: float(apart(degrees, HUES[word])))


def paint(pixels: Pixels, main: Hue, colour: str) -> Pixels:
    """Turns the main hue of `[h, w, 3]` uint8 to a colour's and leaves every other hue alone."""
    hsv = to_hsv(pixels)
    distance = apart(hsv[..., 0], main.degrees)
    turned = (hsv[..., 0] + HUES[colour] - main.degrees) % 360
    # Hues at the edge of the range turn too, or an outline would keep its old colour.
    touched = (distance < NEAR + 10) & (hsv[..., 1] > 0.05)
    hue = np.where(touched, turned, hsv[..., 0])
    scaled = np.stack([hue * 256 / 360, hsv[..., 1] * 255, hsv[..., 2] * 255], axis=-1)
    image = Image.fromarray(np.round(scaled).astype(np.int64).astype(np.uint8), "HSV")
    return np.asarray(image.convert("RGB"), dtype=np.uint8)
