"""What sketch offers to draw."""

from __future__ import annotations

from pathlib import Path

from cantata_layers.qwen_image.stages.builder import PictureBuilder, PictureOffer
from cantata_layers.qwen_image.text.pictures import Size

SIDE = 128
"""Side in pixels of the only size of picture that the model was trained for."""
STEPS = 20
"""Denoising steps that suffice."""
GUIDANCE = 3.0
"""Scale of classifier-free guidance, against the prompt `NEGATIVE`."""
NEGATIVE = " "
"""Stands for no caption at all, as in the published pipeline."""
MIN_SIDE, MAX_PIXELS = 64, 512 * 512
"""It has seen no other size; these show what the others make of it."""
NOTE = (
    "A toy. It draws emoji-like pictures of a few English words, such as “red heart” or “cat "
    "face”, and mixes kinds and colours that it has seen."
)


def load_builder(checkpoint: Path) -> PictureBuilder:
    """Return the builder of the embedded weights."""
    offer = PictureOffer(Size(SIDE, SIDE), MIN_SIDE, MAX_PIXELS, STEPS, GUIDANCE, NOTE)
    return PictureBuilder(checkpoint, offer)
