"""The pictures that both the reference and this implementation draw."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.pictures import ImageRequest
from cantata_layers.qwen_image.config import Family
from cantata_layers.qwen_image.text.pictures import EditAreas
from cantata_models.qwen_image.random_checkpoint.shapes import VARIANTS
from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint
from cantata_models.qwen_image.tests.parity.loras import LORAS, write_lora

GOLDENS = Path(__file__).parents[1] / "goldens"
SEED = 1
"""Of the tiny checkpoints."""
AREAS = {
    Family.EDIT: EditAreas(seen=160**2, kept=160**2),
    Family.EDIT_PLUS: EditAreas(seen=112**2, kept=160**2),
}
"""Smaller than published, for both."""
ROW_STRIDE, TOKEN_STRIDE, PIXEL_STRIDE = 7, 5, 3
"""Of what is kept."""
WHOLE_TOKENS = 24
"""Pictures of so many are kept whole."""

Values = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class QwenImageScenario:
    """One request."""

    name: str
    prompt: str
    width: int | None = 64
    height: int | None = 64
    steps: int = 4
    guidance: float = 4.0
    negative: str | None = None
    seed: int = 0
    pictures: int = 1
    """That are drawn of it, with seeds from `seed`."""
    references: tuple[tuple[int, int], ...] = ()
    """Widths and heights."""
    variant: str = "image"
    lora: str | None = None

    def requests(self) -> list[ImageRequest]:
        """One for each picture."""
        references = tuple(
            picture(width, height, number)
            for number, (width, height) in enumerate(self.references, start=self.seed)
        )
        return [
            ImageRequest(
                self.prompt,
                references,
                self.width,
                self.height,
                self.seed + index,
                self.negative,
                self.steps,
                self.guidance,
            )
            for index in range(self.pictures)
        ]


LONG = "A long list: " + ", ".join(f"thing number {number}" for number in range(400)) + "."
SCENARIOS = (
    QwenImageScenario("square", "A red cube on a table."),
    QwenImageScenario("wide", "Ein grünes Haus am See, 湖边的房子。", 112, 48, seed=7),
    QwenImageScenario("tall", "A candle", 48, 112, steps=3, guidance=2.5, seed=2),
    QwenImageScenario("unguided", "A blue ball.", guidance=1.0, seed=11),
    QwenImageScenario(
        "negative", "A portrait", negative="blurry, dark, text", guidance=7.5, seed=3
    ),
    QwenImageScenario("empty", "", 32, 32, steps=2, negative="", seed=4),
    QwenImageScenario("long", LONG, 48, 48, steps=2, negative="short", seed=5),
    QwenImageScenario("line_feeds", "\n\n  Two lines\nof text \n", 48, 32, steps=2, seed=6),
    QwenImageScenario("batch", "Three of a kind", 48, 64, steps=2, seed=40, pictures=3),
    QwenImageScenario("smallest", "Quick", 32, 16, steps=2, seed=8),
    QwenImageScenario("large", "A wide view", 320, 256, steps=2, seed=9),
    QwenImageScenario("lora", "In a certain style", steps=3, seed=10, lora="peft"),
    QwenImageScenario("kohya_lora", "In another style", 48, 48, steps=2, seed=12, lora="kohya"),
    QwenImageScenario("lightning", "In four steps", guidance=1.0, seed=13, lora="lightning"),
    QwenImageScenario(
        "edit", "Make it blue.", None, None, 3, references=((200, 200),), variant="edit"
    ),
    QwenImageScenario(
        "edit_sized", "Turn it", 96, 64, 2, seed=1, references=((300, 130),), variant="edit"
    ),
    QwenImageScenario(
        "edit_unguided",
        "Größer, bitte",
        None,
        None,
        2,
        guidance=1.0,
        seed=2,
        references=((90, 333),),
        variant="edit",
    ),
    QwenImageScenario(
        "edit_negative",
        "Remove the background" + " and all of it" * 40,
        64,
        64,
        2,
        negative="noise",
        seed=3,
        references=((160, 160),),
        variant="edit",
    ),
    QwenImageScenario(
        "plus_one", "Age it.", 64, 48, 2, references=((170, 120),), variant="edit-2509"
    ),
    QwenImageScenario(
        "plus_two",
        "Put the first beside the second.",
        64,
        64,
        3,
        seed=5,
        references=((128, 128), (222, 111)),
        variant="edit-2509",
    ),
    QwenImageScenario(
        "plus_three",
        "All of them in one room",
        None,
        None,
        2,
        seed=6,
        references=((64, 64), (100, 190), (333, 200)),
        variant="edit-2509",
    ),
    QwenImageScenario(
        "still_two",
        "Swap their colours.",
        80,
        64,
        3,
        seed=7,
        references=((140, 140), (150, 100)),
        variant="edit-2511",
    ),
)

SERVED = QwenImageScenario(
    "served",
    "Make it night.",
    64,
    48,
    2,
    guidance=3.0,
    seed=21,
    references=((90, 60),),
    variant="edit-2511",
)
"""With references of the published sizes."""

TILE, STRIDE = 64, 48
"""Pixels."""
TILED = (176, 112)
"""Width and height of a picture that is cut into tiles."""


def kept_rows(rows: Values) -> Values:
    """Of embeddings [T, E], what the goldens hold."""
    return rows[::ROW_STRIDE]


def kept_latents(latents: Values) -> Values:
    """The same of latents [pictures, steps, tokens, numbers]."""
    few = latents.shape[2] <= WHOLE_TOKENS
    return latents if few else latents[:, :, ::TOKEN_STRIDE]


def kept_pixels(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The same of pictures [pictures, H, W, 3]."""
    return pixels[:, ::PIXEL_STRIDE, ::PIXEL_STRIDE]


def scenario_named(name: str) -> QwenImageScenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def picture(width: int, height: int, seed: int) -> NDArray[np.uint8]:
    """[H, W, 3]: blocks of colour with some noise on them."""
    source = np.random.RandomState(seed)
    blocks = source.randint(0, 256, (height // 32 + 1, width // 32 + 1, 3))
    large = np.kron(blocks, np.ones((32, 32, 1), int))[:height, :width]
    noisy = large + source.randint(-20, 21, large.shape)
    return noisy.clip(0, 255).astype(np.uint8)


def checkpoint_for(scenario: QwenImageScenario, folder: Path) -> Path:
    """Write the scenario's checkpoint, with its LoRA, unless it is there; return it."""
    made = folder / f"{scenario.variant}-{scenario.lora or 'plain'}"
    if not made.exists():
        write_checkpoint(made, VARIANTS[scenario.variant], SEED)
        if scenario.lora is not None:
            (made / "loras").mkdir()
            write_lora(made / "loras", LORAS[scenario.lora])
    return made
