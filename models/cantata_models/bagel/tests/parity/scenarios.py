"""The pictures that both the reference and this implementation draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chat import Role
from cantata.contract.data.pictures import ImageRequest, Turn
from cantata_models.bagel.pictures import Bounds, PictureSizes

GOLDENS = Path(__file__).parents[1] / "goldens" / "bagel.npz"
SEED = 1
"""Of the tiny checkpoint."""
SIZES = PictureSizes(Bounds(96, 48, 16), Bounds(112, 56, 14))
"""Smaller than published."""
PIXEL_STRIDE = 3
"""Of what is kept of pictures."""


@dataclass(frozen=True, slots=True)
class BagelScenario:
    """One request, with all that the reference takes as numbers."""

    name: str
    prompt: str
    width: int | None = 64
    """None: as the last picture."""
    height: int | None = 64
    steps: int = 4
    guidance: float = 4.0
    seed: int = 0
    references: tuple[tuple[int, int], ...] = ()
    """Widths and heights."""
    earlier: tuple[tuple[tuple[tuple[int, int], ...], str], ...] = ()
    """Turns before: widths and heights of pictures, and a text, which may be empty."""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def thinks(self) -> bool:
        """Whether words come first."""
        return bool(self.options.get("think"))

    def turns(self) -> list[tuple[tuple[NDArray[np.uint8], ...], str]]:
        """Pictures and text of each, the prompt's last."""
        number = count(self.seed)
        return [
            (tuple(picture(width, height, next(number)) for width, height in sizes), text)
            for sizes, text in (*self.earlier, (self.references, self.prompt))
        ]

    def terms(self) -> list[str | NDArray[np.uint8]]:
        """All of it, as the reference takes it."""
        *earlier, (pictures, prompt) = self.turns()
        before = [term for shown, text in earlier for term in (*shown, *([text] if text else ()))]
        return [*before, *pictures, prompt]

    def request(self) -> ImageRequest:
        """For the builder."""
        *earlier, (pictures, prompt) = self.turns()
        return ImageRequest(
            prompt,
            pictures,
            self.width,
            self.height,
            self.seed,
            None,
            self.steps,
            self.guidance,
            options=self.options,
            earlier=tuple(Turn(Role.USER, shown, text) for shown, text in earlier),
        )


THINK = {"think": True, "max_think_token_n": 12}
SCENARIOS = (
    BagelScenario("square", "A red cube on a table."),
    BagelScenario("wide", "Ein grünes Haus am See, 湖边的房子。", 112, 48, 6, seed=7),
    BagelScenario("unguided", "A blue ball.", 48, 64, guidance=1.0, seed=11),
    BagelScenario(
        "by_channel",
        "",
        64,
        80,
        guidance=7.5,
        seed=3,
        options={
            "cfg_renorm_type": "channel",
            "cfg_renorm_min": 0.4,
            "cfg_interval": (0.2, 0.9),
            "timestep_shift": 1.5,
            "cfg_img_scale": 1.0,
        },
    ),
    BagelScenario("edit", "Make it blue.", None, None, 3, seed=4, references=((150, 100),)),
    BagelScenario(
        "edit_two",
        "Put the first beside the second.",
        None,
        None,
        3,
        seed=5,
        references=((64, 64), (40, 190)),
        options={"cfg_renorm_type": "global", "cfg_interval": (0.4, 1.0), "cfg_img_scale": 1.5},
    ),
    BagelScenario("thought", "A candle", 48, 48, 3, seed=6, options=THINK),
    BagelScenario(
        "edit_thought",
        "Turn it",
        None,
        None,
        3,
        seed=8,
        references=((90, 70),),
        options=THINK,
    ),
    # A picture that was made, changed once more; another, shown in between.
    BagelScenario(
        "conversation",
        "Now put it into the other one.",
        None,
        None,
        3,
        seed=9,
        earlier=(
            ((), "A cat with a hat."),
            (((64, 48),), ""),
            (((50, 70),), "And here is a room."),
        ),
    ),
)


def scenario_named(name: str) -> BagelScenario:
    """One of them."""
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def picture(width: int, height: int, seed: int) -> NDArray[np.uint8]:
    """[H, W, 3]: a smooth field of colours with some noise."""
    random = np.random.RandomState(seed)
    rows, columns = np.mgrid[0:height, 0:width]
    waves = [
        np.sin(rows * random.uniform(0.02, 0.2) + columns * random.uniform(0.02, 0.2) + phase)
        for phase in range(3)
    ]
    noise = random.uniform(-12, 12, (height, width, 3))
    return (127 + 100 * np.stack(waves, axis=-1) + noise).clip(0, 255).astype(np.uint8)


def kept_pixels(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """What of a picture is in the goldens."""
    return pixels[::PIXEL_STRIDE, ::PIXEL_STRIDE]
