"""Recordings reach the encoder in its rate, in stereo and at its level."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cantata_models.moss_tts.encoder import levelled, to_stereo
from cantata_models.moss_tts.tests.parity.recordings import SAMPLE_RATE, stereo_recording


def level_db(samples: NDArray[np.float32]) -> float:
    return float(10 * np.log10(np.mean(np.square(samples))))


def test_a_recording_of_the_right_form_stays_as_it_is() -> None:
    recording = stereo_recording(0.2, 1)
    assert np.array_equal(to_stereo(recording, SAMPLE_RATE, SAMPLE_RATE), recording)


def test_one_channel_is_doubled_and_further_ones_are_left_out() -> None:
    recording = stereo_recording(0.1, 1)
    left, surround = recording[:, :1], np.concatenate([recording, recording], axis=1)
    doubled = to_stereo(left, SAMPLE_RATE, SAMPLE_RATE)
    assert np.array_equal(doubled, np.concatenate([left, left], axis=1))
    assert np.array_equal(to_stereo(surround, SAMPLE_RATE, SAMPLE_RATE), recording)


@pytest.mark.parametrize("channels", [1, 2])
def test_another_rate_is_resampled(channels: int) -> None:
    time = np.arange(24_000) / 24_000
    tones = np.stack([np.sin(2 * np.pi * f * time) for f in (440, 620)], axis=1)
    made = to_stereo(tones[:, :channels].astype(np.float32), 24_000, 48_000)
    assert made.shape == (48_000, 2)
    assert made.dtype == np.float32
    middle = np.arange(20_000, 28_000)
    wanted = [np.sin(2 * np.pi * f * middle / 48_000) for f in (440, 620 if channels == 2 else 440)]
    np.testing.assert_allclose(made[middle], np.stack(wanted, axis=1), atol=1e-3)


@pytest.mark.parametrize(
    ("before_db", "after_db"), [(-21.5, -20.0), (-18.0, -20.0), (-30.0, -27.0), (-10.0, -13.0)]
)
def test_the_level_comes_closer_by_3_db_at_most(before_db: float, after_db: float) -> None:
    recording = stereo_recording(0.5, 1)
    given = recording * np.float32(10 ** ((before_db - level_db(recording)) / 20))
    made = levelled(given)
    assert made.dtype == np.float32
    assert level_db(made) == pytest.approx(after_db, abs=1e-3)
    gain = np.abs(made).max() / np.abs(given).max()
    np.testing.assert_allclose(made, gain * given, rtol=1e-5)


def test_silence_stays_silent() -> None:
    assert not levelled(np.zeros((480, 2), np.float32)).any()
