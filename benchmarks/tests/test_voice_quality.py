"""How voices are judged: pitch of sounds whose pitch is known, words, and the table.

The networks that listen are no dependency of the tests; `make eval-voice` runs them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from cantata.contract.data.errors import ConfigError
from cantata_bench.cli import app
from cantata_bench.voice_quality import judges
from cantata_bench.voice_quality.judges import RATE_HZ, Sound
from cantata_bench.voice_quality.measures import (
    EvalResult,
    count_errors,
    measure_ending,
    prepare,
    summarize,
    track_pitch,
)
from cantata_bench.voice_quality.run import make_table, read_sentences

JUDGED = EvalResult("statement", 4.0, 3.0, 10, 1, "", 2.0, -2.0, 3.0)


def hum(hertz: NDArray[np.float64]) -> Sound:
    """Ten harmonics of a changing pitch, one value for each sample."""
    phase = 2 * np.pi * np.cumsum(hertz) / RATE_HZ
    waves = [np.sin(harmonic * phase) / harmonic for harmonic in range(1, 11)]
    return prepare(np.sum(waves, axis=0).astype(np.float32), RATE_HZ)


@pytest.mark.parametrize("hertz", [80, 120, 200, 350])
def test_a_steady_hum_does_not_move(hertz: float) -> None:
    pitch = track_pitch(hum(np.full(RATE_HZ, float(hertz))))
    assert len(pitch) > 90
    assert pitch.std() < 0.2


@pytest.mark.parametrize("middle", [90, 130, 210])
def test_a_glide_moves_by_its_semitones(middle: float) -> None:
    """Six semitones up in a second: a uniform distribution, of deviation 6 / sqrt(12)."""
    pitch = track_pitch(hum(middle * 2 ** (np.linspace(-3, 3, RATE_HZ) / 12)))
    assert pitch.std() == pytest.approx(6 / 12**0.5, abs=0.25)
    assert measure_ending(pitch) == pytest.approx(2.8, abs=0.4)


def test_noise_and_silence_have_no_pitch() -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, RATE_HZ).astype(np.float32)
    assert len(track_pitch(noise)) < 5
    assert len(track_pitch(np.zeros(RATE_HZ, np.float32))) == 0
    assert len(track_pitch(np.zeros(10, np.float32))) == 0


@pytest.mark.parametrize(
    ("heard", "errors"),
    [
        ("The grey cat, doesn't it sleep?", 0),
        ("the gray cat doesnt it sleep", 0),
        ("the gray cat does it sleep", 1),
        ("", 6),
        ("sleep " * 200, 6),
    ],
)
def test_errors_are_of_words_and_never_more_than_there_are(heard: str, errors: int) -> None:
    assert count_errors("The grey cat, doesn't it sleep?", heard) == (6, errors)


def test_a_voice_is_the_mean_of_its_sentences() -> None:
    question = replace(JUDGED, kind="yes-no", mos=3.0, errors=0, ending=1.5)
    voice = summarize("solo", "clara", [JUDGED, JUDGED, question])
    assert voice.mos == pytest.approx(11 / 3)
    assert voice.wer == pytest.approx(100 * 2 / 30)
    assert voice.rise == pytest.approx(3.5)
    assert "| solo | clara | 3.67 | 3.00 | 6.7% | 2.0 | 3.5 |" in make_table([voice])


def test_the_sentences() -> None:
    sentences = read_sentences(None)
    assert len({sentence.text for sentence in sentences}) == 60
    assert {sentence.kind for sentence in sentences} == {"statement", "yes-no", "question", "other"}
    # Whisper spells numbers out, and so must the text.
    assert not any(letter.isdigit() for sentence in sentences for letter in sentence.text)


@pytest.mark.parametrize("content", ["", "statement without a tab", "statement\t "])
def test_a_bad_file_of_sentences(content: str, tmp_path: Path) -> None:
    file = tmp_path / "sentences.tsv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"sentences\.tsv"):
        read_sentences(file)


def test_missing_judges_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(judges, "PACKAGES", ("no_such_judge",))
    result = CliRunner().invoke(app, ["voices", "solo", "--folder", str(tmp_path)])
    assert result.exit_code == 1
    assert "no_such_judge" in result.output
    assert "requirements/judges.txt" in result.output
