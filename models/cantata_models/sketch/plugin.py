"""sketch's plug-in for the server. Its checkpoint has Qwen-Image's published layout, only small."""

from __future__ import annotations

from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.picture import ImageBuilder
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.qwen_image.stages.pipeline import PIPELINE, REFERENCES_STAGE

WEIGHTS_FOLDER = Path(__file__).with_name("weights")
"""The weights shipped with the package, float16."""
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


def load_image_builder(checkpoint: Path) -> ImageBuilder:
    """Return the builder of the embedded weights."""
    # Listing the plug-in loads no tokenizer.
    from cantata_layers.qwen_image.stages.builder import PictureBuilder, PictureOffer
    from cantata_layers.qwen_image.text.pictures import Size

    offer = PictureOffer(Size(SIDE, SIDE), MIN_SIDE, MAX_PIXELS, STEPS, GUIDANCE, NOTE)
    return PictureBuilder(checkpoint, offer)


PLUGIN = ModelPlugin(
    name="sketch",
    model_types=(),
    pipeline=PIPELINE.without((REFERENCES_STAGE,)),
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_image_builder=load_image_builder,
    check_numerics=Factory("cantata_layers.qwen_image.numerics:check_numerics"),
    embedded_checkpoint=WEIGHTS_FOLDER,
)
