"""Runs every gate on the weights."""

from __future__ import annotations

import logging

from cantata_models.sketch.training.captions import get_kind, painted_pictures
from cantata_models.sketch.training.checkpoint_files import CODE, read_autoencoder, read_drawer
from cantata_models.sketch.training.evaluation import gates
from cantata_models.sketch.training.evaluation.judge import reliability, train_judge
from cantata_models.sketch.training.evaluation.page import (
    SketchReport,
    as_text,
    contact_sheet,
    publish,
)
from cantata_models.sketch.training.latent_code import LatentCode
from cantata_models.sketch.training.stages import PictureWorkspace

logger = logging.getLogger(__name__)

SAMPLES = [
    "grinning face", "crying face", "cat face", "dog face", "panda", "robot", "ghost", "rocket",
    "red apple", "pizza", "birthday cake", "banana", "tulip", "cactus", "sun", "rainbow",
    "blue heart", "green heart", "purple car", "orange cat face", "blue rose", "pink guitar",
    "green mushroom", "yellow fish",
    "happy cat", "sad robot", "robot cat", "a blue tree", "two apples", "angry sun",
    "a dog in a car", "castle on a cloud",
]  # fmt: skip
"""Two rows of seen names, one of colours, one of captions that nothing was called."""


def run_evaluate(work: PictureWorkspace) -> str:
    """Measures the weights; returns the figures, and publishes them where that is asked."""
    drawer, autoencoder = read_drawer(work.weights), read_autoencoder(work.weights)
    everything, code = work.pictures(), LatentCode.load(work.weights / CODE)
    pictures = everything.everyday()
    logger.info("training the judge")
    judge = train_judge(pictures.pixels, work.folder / "judge.pt")
    painted = [item for item in painted_pictures(pictures) if item.held_out]
    logger.info("drawing")
    drawn, near = gates.neighbours(drawer, autoencoder, pictures, SAMPLES)
    contact_sheet(drawn).save(work.folder / "samples.png")
    report = SketchReport(
        gates.measure_reconstruction(autoencoder, code, everything),
        reliability(judge, pictures.pixels, [get_kind(name) for name in pictures.names]),
        gates.judged_pairs(judge, pictures, painted),
        gates.measure_names(drawer, autoencoder, judge, pictures),
        gates.measure_pairs(drawer, autoencoder, judge, pictures, held_out=False),
        gates.measure_pairs(drawer, autoencoder, judge, pictures, held_out=True),
        near,
        gates.seconds_a_picture(drawer, autoencoder),
    )
    text = as_text(report)
    if work.publishing:
        publish(text, drawn)
    return text
