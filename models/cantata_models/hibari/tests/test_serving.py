"""Served over HTTP: what is heard are the sentences, and nothing that speech has not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile

from cantata.pipeline.plan import plan_services
from cantata_bench.asr import transcribe, word_error_rate
from e2e.judges import waveform
from served import served_plans

pytestmark = pytest.mark.integration

SENTENCES = (
    "The children walked home along the river after school.",
    "She put the letters on the kitchen table and made some tea.",
    "Could you tell me where the station is?",
    "We need a bigger box for all of these books.",
)
MAX_WER = 0.2
"""By pocketsphinx, over all 39 words: 7 of them. Found: 5."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    plans = plan_services(["hibari"], dtype="float32")
    with served_plans(plans, tmp_path_factory.mktemp("voices")) as address:
        yield address


def speak(url: str, **fields: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    body = {"voice": "heart", "response_format": "pcm", **fields}
    answer = httpx.post(f"{url}/v1/audio/speech", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    samples = np.frombuffer(answer.content, "<i2").astype(np.float32)
    return samples / np.float32(32768)


def test_sentences_are_understood_and_sound_like_speech(url: str) -> None:
    heard = []
    for sentence in SENTENCES:
        sound = speak(url, input=sentence)
        # Its plosives are sharper than the clicks that `lossy` leaves out.
        assert waveform.faults(sound, 24_000, lossy=True) == []
        heard.append(transcribe((sound * 32767).astype(np.int16), 24_000))
    assert word_error_rate(SENTENCES, heard) <= MAX_WER, heard
    assert word_error_rate(SENTENCES, [*heard[1:], heard[0]]) > 0.5, "any words would do"


def test_the_command_finds_the_voice(tmp_path: Path) -> None:
    """Without the model's name."""
    file = tmp_path / "hello.wav"
    command = [
        sys.executable,
        "-m",
        "cantata",
        "say",
        "Hello.",
        "--voice",
        "heart",
        "-o",
        str(file),
    ]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, said.stderr
    samples, rate = soundfile.read(file)
    assert rate == 24_000
    assert 0.3 < len(samples) / rate < 2


def test_an_alias_is_the_voice(url: str) -> None:
    heart, alloy = (speak(url, input="Hello.", voice=voice) for voice in ("heart", "alloy"))
    assert np.array_equal(heart, alloy)


@pytest.mark.parametrize(("text", "status"), [("...", 200), ("猫が好き", 400), ("[[9]]", 400)])
def test_what_cannot_be_spoken(url: str, text: str, status: int) -> None:
    body = {"input": text, "voice": "heart", "response_format": "pcm"}
    answer = httpx.post(f"{url}/v1/audio/speech", json=body, timeout=60)
    assert answer.status_code == status, answer.text
    assert status == 200 or answer.json()["error"]["param"] == "input"
