"""Files of pictures: what is read, what is rejected, and what they may cost."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cantata.contract.data.errors import InvalidImage
from cantata.media.images import read_image
from images_and_videos import image_file, png_bomb, quarters, webp_bomb

MANY = 10_000_000


@pytest.mark.parametrize(
    ("kind", "options", "tolerance"),
    [
        ("PNG", {}, 0),
        ("JPEG", {"quality": 95, "subsampling": 0}, 12),
        ("WEBP", {"lossless": True}, 0),
        ("GIF", {}, 0),
    ],
)
def test_every_format(kind: str, options: dict[str, Any], tolerance: int) -> None:
    pixels = read_image(image_file(quarters(), kind, **options), MANY, "p")
    assert pixels.shape == (40, 60, 3)
    assert pixels.dtype == np.uint8
    difference = np.abs(pixels.astype(int) - quarters().astype(int))
    # The edges of a quarter are not sharp in JPEG.
    assert np.median(difference) <= tolerance
    assert difference[5:15, 5:25].max() <= tolerance


@pytest.mark.parametrize("mode", ["L", "LA", "P", "1", "CMYK", "I;16", "RGBA"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    grey = Image.fromarray(np.full((8, 8), 255, np.uint8))
    if mode == "I;16":
        image = Image.fromarray(np.full((8, 8), 65_535, np.uint16))
    else:
        image = grey.convert(mode)
    kind = "JPEG" if mode == "CMYK" else "PNG"
    pixels = read_image(image_file(image, kind), MANY, "p")
    assert pixels.shape == (8, 8, 3)
    assert pixels.min() >= 250


def test_what_is_transparent_is_white() -> None:
    clear = np.zeros((4, 4, 4), np.uint8)
    clear[:2] = (200, 0, 0, 255)
    for kind in ("PNG", "WEBP"):
        pixels = read_image(image_file(clear, kind, lossless=True), MANY, "p")
        assert (pixels[:2] == (200, 0, 0)).all()
        assert (pixels[2:] == 255).all()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize(("orientation", "turns"), [(1, 0), (3, 2), (6, 3), (8, 1)])
def test_pictures_are_turned_as_they_were_held(kind: str, orientation: int, turns: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    options: dict[str, Any] = {"quality": 95} if kind == "JPEG" else {"lossless": True}
    file = image_file(quarters(), kind, exif=exif, **options)
    expected = np.rot90(quarters(), turns)
    for max_pixels in (MANY, 600):
        pixels = read_image(file, max_pixels, "p")
        assert (pixels.shape[0] > pixels.shape[1]) == (expected.shape[0] > expected.shape[1])
        for y in (4, -5):
            for x in (4, -5):
                np.testing.assert_allclose(pixels[y, x].astype(int), expected[y, x], atol=30)


def test_the_first_frame_of_an_animation_is_read() -> None:
    frames = [Image.fromarray(np.full((6, 6, 3), grey, np.uint8)) for grey in (40, 200)]
    for kind in ("GIF", "WEBP", "PNG"):
        file = image_file(frames[0], kind, save_all=True, append_images=frames[1:], lossless=True)
        np.testing.assert_allclose(read_image(file, MANY, "p").astype(int), 40, atol=3)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_larger_pictures_are_scaled_down_and_keep_their_shape(kind: str) -> None:
    file = image_file(quarters(600, 900), kind)
    pixels = read_image(file, 54_000, "p")
    assert pixels.shape == (190, 285, 3)
    np.testing.assert_allclose(pixels[50, 50].astype(int), (255, 0, 0), atol=8)
    np.testing.assert_allclose(pixels[150, 250].astype(int), 255, atol=8)


READ = """
import resource, sys
from PIL import Image
from cantata.contract.data.errors import InvalidImage
from cantata.media.images import read_image

data = sys.stdin.buffer.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_image(data, 1 << 20, "p")
except InvalidImage as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.parametrize(
    "bomb", [png_bomb(7_104), png_bomb(12_800), png_bomb(30_016), webp_bomb(16_383)], ids=len
)
def test_bombs_are_rejected_before_they_are_decoded(bomb: bytes) -> None:
    # The peak of a process that does nothing else.
    words = [sys.executable, "-W", "error", "-c", READ]
    child = subprocess.run(words, input=bomb, capture_output=True, check=True)
    message, grown_mib = child.stdout.decode().splitlines()
    assert "too large to be decoded; valid: up to 50 million pixels" in message
    # Decoded, the smallest would take 150 MiB.
    assert int(grown_mib) < 16


@pytest.mark.parametrize(
    "file",
    [
        b"",
        b"GIF89a",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        image_file(quarters(), "BMP"),
        image_file(quarters(), "TIFF"),
        image_file(quarters(400, 600), "PNG")[:-800],
        image_file(quarters(400, 600), "JPEG")[:2000],
        image_file(quarters(400, 600), "WEBP")[:60],
    ],
)
def test_what_is_no_picture(file: bytes) -> None:
    with pytest.raises(InvalidImage, match=r"PNG, JPEG, WebP, GIF") as error:
        read_image(file, MANY, "messages[0].content[1].image_url")
    assert error.value.param == "messages[0].content[1].image_url"
