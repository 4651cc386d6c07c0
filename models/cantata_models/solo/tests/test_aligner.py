"""The aligner finds phones in audio, and speaker vectors distinguish speakers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantata_layers.speaker_features import (
    MELS,
    SAMPLE_RATE,
    SPEAKER_SIZE,
    Samples,
    pitch_track,
    speaker_vector,
)
from cantata_models.solo.text.tokens import PHONE_INVENTORY, SIL_ID
from cantata_models.solo.training.aligner import best_path
from cantata_models.solo.training.audio import STOCK_SHARES, plan_utterances
from cantata_models.solo.training.speakers import (
    HELD_OUT_PSEUDO,
    SPEAKERS,
    STOCK_SPEAKERS,
    TRAINING_PSEUDO,
)

PITCH = SPEAKER_SIZE - 2
"""Index of log2 of the pitch in a vector."""


def build_scores(labels: list[int]) -> np.ndarray:
    """Confident scores: each slot matches only its label."""
    scores = np.full((len(labels), len(PHONE_INVENTORY)), -5.0, np.float32)
    scores[np.arange(len(labels)), labels] = 2.0
    return scores


@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=12),
    pauses=st.lists(st.integers(0, 3), min_size=12, max_size=12),
)
def test_the_path_is_found_where_the_sound_is_clear(lengths: list[int], pauses: list[int]) -> None:
    phones, wanted = [SIL_ID], [2]
    for index, length in enumerate(lengths):
        phones += [index, SIL_ID]
        wanted += [length, pauses[index] if index < len(lengths) - 1 else 3]
    labels = [phone for phone, count in zip(phones, wanted, strict=True) for _ in range(count)]
    slots, score = best_path(build_scores(labels), phones)
    assert slots.tolist() == wanted
    assert score == pytest.approx(2.0)


def test_every_phone_gets_a_slot_even_when_unheard() -> None:
    slots, score = best_path(build_scores([SIL_ID, 3, 3, 3, SIL_ID]), [SIL_ID, 3, 7, SIL_ID])
    assert slots.sum() == 5
    assert slots[2] >= 1
    assert score < 2.0


def tone(hertz: float, seconds: float = 1.0) -> Samples:
    """A buzz with many harmonics."""
    clock = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    parts = [np.sin(2 * np.pi * hertz * k * clock) / k for k in range(1, 20)]
    return np.asarray(0.1 * np.sum(parts, axis=0), np.float32)


@pytest.mark.parametrize("hertz", [70.0, 110.0, 180.0, 260.0, 350.0])
def test_pitch_is_found(hertz: float) -> None:
    windows = np.lib.stride_tricks.sliding_window_view(tone(hertz), 960)[::480]
    found = pitch_track(windows)
    assert len(found) == len(windows)
    assert np.median(found) == pytest.approx(hertz, rel=0.02)


def test_a_speaker_vector_ignores_level_silence_and_rate() -> None:
    sound = tone(150.0)
    vector = speaker_vector(sound, SAMPLE_RATE)
    assert vector.shape == (SPEAKER_SIZE,)
    assert vector.dtype == np.float32
    quiet = speaker_vector(np.float32(0.1) * sound, SAMPLE_RATE)
    np.testing.assert_allclose(quiet, vector, atol=1e-3)
    late = speaker_vector(np.concatenate([np.zeros(SAMPLE_RATE, np.float32), sound]), SAMPLE_RATE)
    assert np.abs(late - vector)[:MELS].mean() < 0.2
    assert late[PITCH] == pytest.approx(vector[PITCH], abs=0.01)
    faster = speaker_vector(sound, round(SAMPLE_RATE * 1.25))
    assert faster[PITCH] - vector[PITCH] == pytest.approx(np.log2(1.25), abs=0.03)


@pytest.mark.parametrize("length", [0, 1, 959, 4000])
def test_a_vector_of_anything_is_finite(length: int) -> None:
    noise = np.random.default_rng(0).normal(size=length).astype(np.float32)
    assert np.isfinite(speaker_vector(noise, SAMPLE_RATE)).all()
    assert np.isfinite(speaker_vector(np.zeros(length, np.float32), SAMPLE_RATE)).all()


def test_held_out_speakers_are_not_trained_on(tmp_path: Path) -> None:
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("hello.\n" * 5100)
    everyone = plan_utterances(sentences, tmp_path, shared=4000, main=100)
    assert {item.speaker.name for item in everyone[4000:4100]} == {"clara"}
    others = Counter(i.speaker.name if i.speaker.stock else "pseudo" for i in everyone[4100:])
    assert set(others) == {"ben", "ruby", "ewan", "pseudo"}
    assert min(others.values()) == pytest.approx(250, abs=50)
    planned = everyone[:4000]
    used = {item.speaker.name for item in planned}
    assert used == {item.name for item in (*STOCK_SPEAKERS, *TRAINING_PSEUDO)}
    assert len(HELD_OUT_PSEUDO) >= 10
    assert used.isdisjoint(item.name for item in HELD_OUT_PSEUDO)
    share = sum(item.speaker.name == "clara" for item in planned) / len(planned)
    assert share == pytest.approx(STOCK_SHARES["clara"], abs=0.03)
    assert all(0.5 <= item.rate <= 2.0 for item in planned)
    assert len(SPEAKERS) == len(STOCK_SPEAKERS) + len(TRAINING_PSEUDO) + len(HELD_OUT_PSEUDO)


def test_more_sentences_leave_the_first_ones_as_they_are(tmp_path: Path) -> None:
    few, many = tmp_path / "few.txt", tmp_path / "many.txt"
    few.write_text("hello.\n" * 50)
    many.write_text("hello.\n" * 90)
    assert plan_utterances(few, tmp_path, 60, 20) == plan_utterances(many, tmp_path, 60, 20)[:50]
