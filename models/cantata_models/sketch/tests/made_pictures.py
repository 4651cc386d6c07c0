"""Pictures that need no font: discs and squares in plain colours."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from cantata_models.sketch.training.pictures import SIDE, Pixels, TrainingPictures

INKS = {"red": "#e02020", "yellow": "#f0c818", "green": "#20c040", "blue": "#2080e0"}


def shape(kind: str, ink: str, size: int = 40) -> Pixels:
    """Draws a disc or a square, `[128, 128, 3]`."""
    image = Image.new("RGB", (SIDE, SIDE), "white")
    box = (SIDE // 2 - size, SIDE // 2 - size, SIDE // 2 + size, SIDE // 2 + size)
    pen = ImageDraw.Draw(image)
    (pen.ellipse if kind == "disc" else pen.rectangle)(box, fill=ink)
    return np.array(image, dtype=np.uint8)


def made_pictures() -> TrainingPictures:
    """A disc and a square of each colour, and a grey disc, which no paint can change."""
    kinds = [(kind, colour) for kind in ("disc", "square") for colour in INKS]
    pixels = [shape(kind, INKS[colour]) for kind, colour in kinds] + [shape("disc", "#707070")]
    names = [f"{colour} {kind}" for kind, colour in kinds] + ["pebble"]
    return TrainingPictures(
        np.stack(pixels), names, [["shape"] for _ in names], ["\u2600"] * len(names)
    )
