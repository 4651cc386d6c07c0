"""The autoencoder's halves: tiles, previews, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.feed_forward import Tiling
from cantata_layers.qwen_image.config import WEIGHTS, load_config
from cantata_layers.qwen_image.sampling import fit_preview
from cantata_layers.qwen_image.vae.coder import PictureDecoder, PictureEncoder, statistics
from cantata_models.qwen_image.random_checkpoint.shapes import VARIANTS
from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint
from cantata_models.qwen_image.tests.checks import LATENT, check_pixels, goldens
from cantata_models.qwen_image.tests.drawing import CPU
from cantata_models.qwen_image.tests.parity.scenarios import (
    SERVED,
    STRIDE,
    TILE,
    TILED,
    checkpoint_for,
    kept_pixels,
    picture,
)
from threads import threads

PIXELS = picture(*TILED, seed=1)
IN_TILES = Tiling(above=0, size=TILE, stride=STRIDE)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield checkpoint_for(SERVED, tmp_path_factory.mktemp("checkpoint"))


def test_tiles_are_the_references(checkpoint: Path) -> None:
    config = load_config(checkpoint).vae
    means, stds = statistics(config, CPU)
    latents = PictureEncoder(checkpoint, config, CPU, IN_TILES).encode(PIXELS)
    theirs = goldens()["tiling/latents"]
    np.testing.assert_allclose(latents * stds + means, theirs, rtol=0, atol=LATENT)
    normal = (torch.from_numpy(theirs) - means) / stds
    pixels = PictureDecoder(checkpoint, config, CPU, IN_TILES).decode(normal)
    check_pixels(kept_pixels(pixels[None]), goldens()["tiling/pixels"])


def test_small_pictures_have_no_tiles(checkpoint: Path) -> None:
    config = load_config(checkpoint).vae
    whole = PictureEncoder(checkpoint, config, CPU)
    expected = whole.encode(PIXELS)
    limit = PIXELS.shape[0] * PIXELS.shape[1]
    for above, tiled in ((limit, False), (limit - 1, True)):
        tiling = Tiling(above, TILE, STRIDE)
        made = PictureEncoder(checkpoint, config, CPU, tiling).encode(PIXELS)
        assert torch.equal(made, expected) is not tiled
        shown = PictureDecoder(checkpoint, config, CPU, tiling).decode(expected)
        assert (shown == PictureDecoder(checkpoint, config, CPU).decode(expected)).all() != tiled


def test_previews_show_the_colours_of_a_picture(checkpoint: Path) -> None:
    """Of linear latents, exactly: here an encoder that shrinks a picture and mixes its colours."""

    class Mixing:
        def encode(self, pixels: np.ndarray) -> torch.Tensor:
            planes = torch.from_numpy(pixels).permute(2, 0, 1).float() / 255
            mixed = torch.tensor([[1.0, -2, 0.5], [0, 1, 1], [3, 0, 1], [1, 1, 1]])
            return torch.einsum("zc,chw->zhw", mixed, functional.avg_pool2d(planes, 8)) + 1

    colours = fit_preview(Mixing(), 8)
    shown = colours.picture(Mixing().encode(PIXELS))
    planes = functional.avg_pool2d(torch.from_numpy(PIXELS).permute(2, 0, 1).float(), 8)
    expected = planes.permute(1, 2, 0).round().numpy()
    assert np.abs(shown - expected).max() <= 1


def test_a_checkpoints_previews_do_not_change(checkpoint: Path) -> None:
    config = load_config(checkpoint).vae
    encoder = PictureEncoder(checkpoint, config, CPU)
    one, same = (fit_preview(encoder, config.pixels_per_latent) for _ in range(2))
    np.testing.assert_array_equal(one.matrix, same.matrix)
    assert one.matrix.shape == (16, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("encoder.conv_in.bias"), "conv_in.bias"),
        (lambda tensors: tensors.update({"encoder.new": torch.zeros(1)}), "encoder.new"),
        (
            lambda tensors: tensors.update({"quant_conv.bias": torch.zeros(3)}),
            "quant_conv.bias",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named(tmp_path: Path, change: object, message: str) -> None:
    folder = write_checkpoint(tmp_path, VARIANTS["image"], 1)
    path = folder / "vae" / f"{WEIGHTS}.safetensors"
    tensors = load_file(path)
    assert callable(change)
    change(tensors)
    save_file(tensors, path)
    with pytest.raises(ConfigError, match=message):
        PictureEncoder(folder, load_config(folder).vae, CPU)
