"""Features of media: what the encoders are trained on, and clear errors for what is none."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from cantata.contract.data.errors import InvalidAudio, InvalidRequest
from cantata_layers.omni.inputs import (
    MediaModality,
    PatchGrid,
    SoundFeatures,
    VisionFeatures,
)
from cantata_layers.omni.messages import PromptPicture, PromptSound, Video
from cantata_layers.omni.preprocess import Preprocessor, SoundRules
from cantata_layers.omni.preprocessor_config import PixelLimits, PreprocessorConfig
from cantata_layers.omni.tests.media import RATE, picture, sound, video
from cantata_layers.omni.thinker_fields import VisionGrid

HALVES = (0.5, 0.5, 0.5)
CONFIG = PreprocessorConfig(128, 300.0, False, PixelLimits(3136, 12_845_056), HALVES, HALVES)


GRID = VisionGrid(16, 2, 2)
RULES = SoundRules(lambda frames: frames // 8)


@pytest.fixture(scope="module")
def preprocessor() -> Preprocessor:
    return Preprocessor(CONFIG, GRID, RULES)


def heard(preprocessor: Preprocessor, given: PromptSound) -> SoundFeatures:
    [made] = preprocessor.features([given])
    assert isinstance(made, SoundFeatures)
    return made


def seen(preprocessor: Preprocessor, given: PromptPicture | Video) -> VisionFeatures:
    [made] = preprocessor.features([given])
    assert isinstance(made, VisionFeatures)
    return made


def cube(frames: NDArray[np.uint8], top: int, left: int) -> NDArray[np.float64]:
    """[2, H, W, 3] -> the values of the patch there, scaled to -1..1."""
    values = frames[:, top : top + 16, left : left + 16].astype(np.float64) / 127.5 - 1
    return values.transpose(3, 0, 1, 2).reshape(-1)


@pytest.mark.parametrize(("samples", "frames"), [(1600, 10), (1601, 11), (16_159, 101)])
def test_a_recording_is_padded_to_whole_mel_frames(
    preprocessor: Preprocessor, samples: int, frames: int
) -> None:
    tone = np.sin(np.arange(samples, dtype=np.float32))
    made = heard(preprocessor, PromptSound(tone))
    assert made.mels.shape == (128, frames)
    assert made.mels.dtype == np.float32


@pytest.mark.parametrize(("samples", "frames"), [(1600, 10), (1601, 10), (16_159, 100)])
def test_filled_up_in_front_a_recording_ends_with_a_mel_frame(samples: int, frames: int) -> None:
    left = Preprocessor(replace(CONFIG, pads_left=True), GRID, SoundRules(RULES.rows, silence=2))
    tone = np.sin(np.arange(samples, dtype=np.float32))
    mels = heard(left, PromptSound(tone)).mels
    assert mels.shape == (128, frames)
    longer = heard(left, PromptSound(np.concatenate([np.zeros(3200, np.float32), tone]))).mels
    np.testing.assert_allclose(mels, longer[:, -frames:], rtol=0, atol=1e-6)
    [together, _] = left.features([PromptSound(tone), sound(2.0, 1)])
    assert isinstance(together, SoundFeatures)
    np.testing.assert_array_equal(together.mels, mels)


@pytest.mark.parametrize("hertz", [440, 2500, 6000])
def test_a_tone_is_in_its_mel_bin(preprocessor: Preprocessor, hertz: int) -> None:
    """Slaney's scale from 0 to 8 kHz: linear below 1 kHz, logarithmic above."""

    def mel(frequency: float) -> float:
        if frequency < 1000:
            return frequency * 3 / 200
        return 15 + 27 * math.log(frequency / 1000) / math.log(6.4)

    tone = np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE).astype(np.float32)
    mels = heard(preprocessor, PromptSound(tone)).mels
    expected = mel(hertz) / mel(8000) * 129 - 1
    assert abs(int(mels[:, 50].argmax()) - expected) <= 1.5
    assert mels.max() - mels.min() == pytest.approx(2.0, abs=1e-5)  # 80 dB, as Whisper clips


def test_a_picture_s_patches_are_in_blocks_of_rows(preprocessor: Preprocessor) -> None:
    given = picture(64, 96, 1)
    made = seen(preprocessor, given)
    assert (made.modality, made.grid, made.rows) == (MediaModality.IMAGE, PatchGrid(1, 4, 6), 6)
    twice = np.stack([given.pixels, given.pixels])
    for patch, (top, left) in {0: (0, 0), 1: (0, 16), 2: (16, 0), 4: (0, 32), 13: (32, 16)}.items():
        np.testing.assert_allclose(made.patches[patch], cube(twice, top, left), atol=1e-6)


def test_a_video_s_patches_are_of_two_frames(preprocessor: Preprocessor) -> None:
    given = video(3, 352, 384, 4.0, 2)
    made = seen(preprocessor, given)
    assert (made.modality, made.grid, made.rows) == (MediaModality.VIDEO, PatchGrid(2, 22, 24), 264)
    assert made.seconds_per_step == 0.5
    frames = np.concatenate([given.frames, given.frames[-1:]])
    per_step = 22 * 24
    for patch, (step, top, left) in {
        0: (0, 0, 0),
        3: (0, 16, 16),
        per_step: (1, 0, 0),
        per_step + 4 * 13: (1, 32, 32),
    }.items():
        pair = frames[2 * step : 2 * step + 2]
        np.testing.assert_allclose(made.patches[patch], cube(pair, top, left), atol=1e-6)


@pytest.mark.parametrize(
    ("height", "width", "grid"),
    [
        (3, 3, PatchGrid(1, 4, 4)),  # 3,136 pixels at least
        (64, 65, PatchGrid(1, 4, 4)),
        (50, 101, PatchGrid(1, 4, 6)),
        (20, 3200, PatchGrid(1, 2, 200)),
    ],
)
def test_a_picture_is_resized_to_whole_rows(
    preprocessor: Preprocessor, height: int, width: int, grid: PatchGrid
) -> None:
    assert seen(preprocessor, picture(height, width, 3)).grid == grid


def test_a_large_picture_and_a_small_video_are_resized_to_their_limits() -> None:
    limited = PreprocessorConfig(128, 300.0, False, PixelLimits(3136, 40_000), HALVES, HALVES)
    preprocessor = Preprocessor(limited, GRID, RULES)
    grid = seen(preprocessor, picture(400, 200, 4)).grid
    assert 30_000 < grid.height * grid.width * 256 <= 40_000
    assert grid.height == 2 * grid.width - 2 or grid.height == 2 * grid.width
    grid = seen(preprocessor, video(2, 64, 64, 1.0, 5)).grid
    assert (grid.time, grid.height * grid.width * 256) == (1, 384 * 384)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (sound(0.05, 1), InvalidAudio, "0.05 s of sound .* valid: one dimension, 0.1 to 300 s"),
        (PromptSound(np.zeros(RATE * 301, np.float32)), InvalidAudio, "301.00 s of sound"),
        (PromptSound(np.zeros((2, RATE), np.float32)), InvalidAudio, "2 dimensions"),
        (PromptSound(np.full(RATE, np.nan, np.float32)), InvalidAudio, "no numbers"),
        (PromptPicture(np.zeros((0, 8, 3), np.uint8)), InvalidRequest, r"not uint8 \[0, 8, 3\]"),
        (PromptPicture(np.zeros((8, 8, 4), np.uint8)), InvalidRequest, r"not uint8 \[8, 8, 4\]"),
        (PromptPicture(np.zeros((8, 8, 3), np.float32)), InvalidRequest, "not float32"),
        (PromptPicture(np.zeros((1, 201, 3), np.uint8)), InvalidRequest, "201 x 1 is too narrow"),
        (Video(np.zeros((2, 64, 64, 3), np.uint8), 0.0), InvalidRequest, "fps must be positive"),
        (Video(np.zeros((0, 64, 64, 3), np.uint8), 2.0), InvalidRequest, "pixels must be"),
    ],
)
def test_what_has_no_features_is_refused(
    preprocessor: Preprocessor,
    given: PromptSound | PromptPicture | Video,
    error: type[InvalidRequest],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        preprocessor.features([given])
