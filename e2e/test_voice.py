"""What each model's voices make of sentences: files of sound, looked at and listened to."""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from cantata.plugins import installed_plugins
from cantata_bench.asr import transcribe, word_error_rate
from cantata_models.solo.speaker_features import Samples, speaker_vector
from timed import timed

from .server import Server

HELD_OUT = Path(__file__).parent.parent / "models/cantata_models/solo/training/heldout.tsv"
GROUPS = ("plain", "questions", "names", "numbers")
WORST_WER = 0.30
SECONDS_PER_CHARACTER = (0.03, 0.16)
SILENT = 0.01  # -40 dBFS
LONGEST_SILENCE_S = 1.0
LEAST_LOUDNESS = 0.02  # root mean square
FULL_SCALE = 32767

pytestmark = [pytest.mark.e2e, pytest.mark.level1, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Reading:
    """One sentence as a file."""

    sentence: str
    pcm: NDArray[np.int16]
    sample_rate: int
    took_s: float

    @property
    def duration_s(self) -> float:
        return len(self.pcm) / self.sample_rate

    @property
    def silences_s(self) -> list[float]:
        """Stretches without sound, in order."""
        step = self.sample_rate // 100
        steps = np.abs(self.pcm[: len(self.pcm) // step * step] / 32768).reshape(-1, step)
        runs = groupby(steps.max(axis=1) < SILENT)
        return [len(list(run)) / 100 for silent, run in runs if silent]


@pytest.fixture(
    scope="module",
    params=[name for name, plugin in installed_plugins().items() if plugin.embedded_checkpoint],
)
def model(request: pytest.FixtureRequest) -> str:
    """Each model whose weights ship with it."""
    return str(request.param)


@pytest.fixture(scope="module")
def readings(server: Server) -> Mapping[str, Sequence[Reading]]:
    """By voice: its share of sentences that no training saw."""
    voices = [voice["id"] for voice in server.get("/v1/audio/voices").json()["voices"]]
    sentences = held_out_sentences()
    assert len(sentences) >= 40
    return {
        voice: [read(server, sentence, voice) for sentence in sentences[number :: len(voices)]]
        for number, voice in enumerate(voices)
    }


@pytest.fixture(scope="module")
def heard(readings: Mapping[str, Sequence[Reading]]) -> Mapping[str, Sequence[str]]:
    """By voice: what a speech recogniser makes of them."""
    return {
        voice: [transcribe(reading.pcm, reading.sample_rate) for reading in of_voice]
        for voice, of_voice in readings.items()
    }


def held_out_sentences() -> list[str]:
    lines = HELD_OUT.read_text(encoding="utf-8").splitlines()
    found = [text for group, text in (line.split("\t") for line in lines) if group in GROUPS]
    return found[::2]


def read(server: Server, sentence: str, voice: str) -> Reading:
    asked = time.perf_counter()
    answer = server.speech(input=sentence, voice=voice, response_format="wav")
    took_s = time.perf_counter() - asked
    assert answer.status_code == 200, answer.text
    pcm, rate = soundfile.read(io.BytesIO(answer.content), dtype="int16")
    return Reading(sentence, pcm, rate, took_s)


@timed(one_sided=True)
def test_files_are_made_faster_than_they_play(
    server: Server, readings: Mapping[str, Sequence[Reading]]
) -> None:
    for voice, of_voice in readings.items():
        again = read(server, of_voice[0].sentence, voice)
        assert again.took_s < again.duration_s, voice


def test_the_sample_rate_is_the_models(
    readings: Mapping[str, Sequence[Reading]], model: str, server: Server
) -> None:
    models = {one["id"]: one for one in server.get("/v1/audio/models").json()["models"]}
    rates = {reading.sample_rate for of_voice in readings.values() for reading in of_voice}
    assert rates == {models[model]["sample_rate"]}


def test_sentences_take_as_long_as_speech_does(
    readings: Mapping[str, Sequence[Reading]],
) -> None:
    least, most = SECONDS_PER_CHARACTER
    for voice, of_voice in readings.items():
        for reading in of_voice:
            per_character_s = reading.duration_s / len(reading.sentence)
            assert least < per_character_s < most, (voice, reading.sentence)


def test_no_file_is_silent_or_has_a_hole(readings: Mapping[str, Sequence[Reading]]) -> None:
    for voice, of_voice in readings.items():
        for reading in of_voice:
            loudness = np.sqrt(np.mean((reading.pcm / 32768) ** 2))
            assert loudness > LEAST_LOUDNESS, (voice, reading.sentence)
            assert max(reading.silences_s, default=0) < LONGEST_SILENCE_S, (voice, reading.sentence)


def test_no_sample_is_clipped(readings: Mapping[str, Sequence[Reading]]) -> None:
    for voice, of_voice in readings.items():
        for reading in of_voice:
            clipped = np.count_nonzero(np.abs(reading.pcm.astype(int)) >= FULL_SCALE)
            assert clipped == 0, (voice, reading.sentence)


def test_sentences_never_trained_on_are_understood(
    readings: Mapping[str, Sequence[Reading]],
    heard: Mapping[str, Sequence[str]],
    model: str,
    figures: Callable[..., None],
) -> None:
    for voice, of_voice in readings.items():
        seconds = sum(reading.duration_s for reading in of_voice)
        rtfs = [reading.took_s / reading.duration_s for reading in of_voice]
        peak = max(int(np.abs(reading.pcm.astype(int)).max()) for reading in of_voice)
        said = [reading.sentence for reading in of_voice]
        figures(
            model=model,
            voice=voice,
            sentences=len(of_voice),
            seconds=f"{seconds:.1f}",
            RTF=f"{min(rtfs):.3f} to {max(rtfs):.3f}",
            peak=f"{20 * np.log10(peak / 32768):.1f} dBFS",
            silence=f"{max(max(reading.silences_s, default=0) for reading in of_voice):.2f} s",
            WER=f"{word_error_rate(said, heard[voice]):.3f}",
        )
    pairs = [
        (reading.sentence, words)
        for voice, of_voice in readings.items()
        for reading, words in zip(of_voice, heard[voice], strict=True)
    ]
    said, understood = zip(*pairs, strict=True)
    assert word_error_rate(said, understood) <= WORST_WER


def pitch_hz(samples: Samples, sample_rate: int) -> float:
    return float(2 ** speaker_vector(samples, sample_rate)[-2])


def test_a_reference_recording_is_followed(server: Server, model: str) -> None:
    """The reference is a voice that plays a sixth faster, so that no stock voice sounds like it."""
    models = {one["id"]: one for one in server.get("/v1/audio/models").json()["models"]}
    if not models[model]["capabilities"]["references"]:
        pytest.skip(f"{model} follows no recording")
    text = "We need a bigger box for all of these books, and a better place to keep them."

    def spoken(**fields: object) -> Samples:
        answer = server.speech(input=text, response_format="pcm", **fields)
        assert answer.status_code == 200, answer.text
        return np.frombuffer(answer.content, dtype="<i2").astype(np.float32) / 32768

    faster = round(24_000 * 7 / 6)
    reference = server.speech(input=text, voice="clara", response_format="wav").content
    played = bytearray(reference)
    played[24:28] = faster.to_bytes(4, "little")  # WAV's sample rate
    data = "data:audio/wav;base64," + base64.b64encode(played).decode()
    stock = pitch_hz(spoken(voice="clara"), 24_000)
    wanted = pitch_hz(spoken(voice="clara"), faster)
    followed = pitch_hz(spoken(voice="clara", ref_audio=data), 24_000)
    assert abs(np.log2(followed / wanted)) < abs(np.log2(stock / wanted)) / 2
