"""Served over HTTP: each voice is understood, sounds like speech, and begins early."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

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
MAX_WER = 0.25
"""By pocketsphinx, which hears American English, over all 39 words."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    plans = plan_services(["quartet"], dtype="float32")
    with served_plans(plans, tmp_path_factory.mktemp("voices")) as address:
        yield address


def speak(url: str, **fields: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    body = {"voice": "clara", "response_format": "pcm", **fields}
    answer = httpx.post(f"{url}/v1/audio/speech", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    samples = np.frombuffer(answer.content, "<i2").astype(np.float32)
    return samples / np.float32(32768)


@pytest.mark.parametrize("voice", ["clara", "ben"])
def test_sentences_are_understood_and_sound_like_speech(url: str, voice: str) -> None:
    heard = []
    for sentence in SENTENCES:
        sound = speak(url, input=sentence, voice=voice)
        assert waveform.faults(sound, 24_000, lossy=True) == []
        heard.append(transcribe((sound * 32767).astype(np.int16), 24_000))
    assert word_error_rate(SENTENCES, heard) <= MAX_WER, heard


@pytest.mark.parametrize("voice", ["ruby", "ewan"])
def test_british_voices_sound_like_speech(url: str, voice: str) -> None:
    sound = speak(url, input=SENTENCES[1], voice=voice)
    assert waveform.faults(sound, 24_000, lossy=True) == []


def test_an_alias_is_the_voice(url: str) -> None:
    clara, alloy = (speak(url, input="Hello.", voice=voice) for voice in ("clara", "alloy"))
    assert np.array_equal(clara, alloy)


def test_the_samples_are_the_same_in_company(url: str) -> None:
    text = "Nobody heard the second bell."
    alone = speak(url, input=text, voice="ewan", seed=5)
    with httpx.Client(timeout=60) as client:
        body = {"input": text * 4, "voice": "ruby", "response_format": "pcm"}
        with client.stream("POST", f"{url}/v1/audio/speech", json=body) as other:
            assert other.status_code == 200
            together = speak(url, input=text, voice="ewan", seed=5)
    assert np.array_equal(alone, together)


def test_a_recording_is_followed_alone_and_in_company(url: str) -> None:
    wav = httpx.post(
        f"{url}/v1/audio/speech",
        json={"input": SENTENCES[1], "voice": "ewan", "response_format": "wav"},
        timeout=60,
    ).content
    recording = "data:audio/wav;base64," + base64.b64encode(wav).decode()
    fields = {"input": SENTENCES[0], "ref_audio": recording, "seed": 5}
    alone = speak(url, **fields)
    assert waveform.faults(alone, 24_000, lossy=True) == []
    with ThreadPoolExecutor(2) as pool:
        other = pool.submit(speak, url, input=SENTENCES[3] * 4, voice="ruby")
        assert np.array_equal(speak(url, **fields), alone)
        assert len(other.result()) > len(alone)
