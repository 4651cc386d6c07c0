"""The shipped checkpoint: small, whole, and drawing what it is asked for."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from cantata_models.sketch.plugin import WEIGHTS_FOLDER
from cantata_models.sketch.request_builder import SIDE
from cantata_models.sketch.tests.made_pictures import INKS, made_pictures, shape
from cantata_models.sketch.training.autoencoder_training import as_tensor, psnr
from cantata_models.sketch.training.checkpoint_files import (
    CODE,
    INDEX,
    PARTS,
    read_autoencoder,
    read_drawer,
)
from cantata_models.sketch.training.colours import main_hue, nearest_colour
from cantata_models.sketch.training.latent_code import LatentCode
from cantata_models.sketch.training.networks.autoencoder import Autoencoder
from cantata_models.sketch.training.picture_training import Drawer
from cantata_models.sketch.training.sampling import draw_pictures
from cantata_models.sketch.training.words import CLOSING, DROPPED

LARGEST = 12_000_000
"""Bytes that the checkpoint may take."""


@pytest.fixture(scope="module")
def drawer() -> Drawer:
    return read_drawer(WEIGHTS_FOLDER)


@pytest.fixture(scope="module")
def autoencoder() -> Autoencoder:
    return read_autoencoder(WEIGHTS_FOLDER)


def test_the_checkpoint_is_small_and_complete() -> None:
    files = [path for path in WEIGHTS_FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= LARGEST
    index = json.loads((WEIGHTS_FOLDER / INDEX).read_text())
    assert index["_class_name"] == "QwenImagePipeline"
    assert all((WEIGHTS_FOLDER / part).is_dir() for part in PARTS)


def test_the_prompt_has_the_published_length(drawer: Drawer) -> None:
    assert len(drawer.prompts.ids("")) == DROPPED + CLOSING
    assert len(drawer.prompts.ids("red heart")) == DROPPED + 2 + CLOSING


def test_hearts_have_the_asked_colour(drawer: Drawer, autoencoder: Autoencoder) -> None:
    """Green hearts were never shown."""
    captions = [f"{colour} heart" for colour in INKS]
    pictures = draw_pictures(drawer, autoencoder, captions, seed=1)
    assert pictures.shape == (len(INKS), SIDE, SIDE, 3)
    found = [nearest_colour(main_hue(picture).degrees) for picture in pictures]
    assert found == list(INKS)
    assert (pictures[:, :8, :8] > 200).all(), "the paper is white"


@torch.no_grad()
def test_the_autoencoder_keeps_pictures_it_never_saw(autoencoder: Autoencoder) -> None:
    pixels = np.stack([*made_pictures().pixels, shape("disc", INKS["blue"], 23)])
    real = as_tensor(pixels)
    assert psnr(autoencoder.decode(autoencoder.encode(real)), real).min() > 26
    code = LatentCode.load(WEIGHTS_FOLDER / CODE)
    wrong = autoencoder.encode(real) - torch.from_numpy(code.encode(pixels))
    assert wrong.square().mean() < 0.05
