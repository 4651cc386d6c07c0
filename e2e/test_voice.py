"""The embedded voice through the running server: are sentences it never saw understood?"""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest

from cantata_models.solo.speaker_features import Samples, speaker_vector

from .asr import transcribe, word_error_rate
from .server import Server

HELD_OUT = Path(__file__).parent.parent / "models/cantata_models/solo/training/heldout.tsv"
GROUPS = ("plain", "questions", "names", "numbers")
WORST_WER = 0.30

pytestmark = pytest.mark.e2e


def held_out_sentences() -> list[str]:
    lines = HELD_OUT.read_text(encoding="utf-8").splitlines()
    found = [text for group, text in (line.split("\t") for line in lines) if group in GROUPS]
    return found[::2]


@pytest.mark.timeout(900)
def test_sentences_never_trained_on_are_understood(server: Server, tell: list[str]) -> None:
    sentences = held_out_sentences()
    assert len(sentences) >= 40
    voices = [voice["id"] for voice in server.get("/v1/audio/voices").json()["voices"]]
    heard = []
    for number, sentence in enumerate(sentences):
        voice = voices[number % len(voices)]
        answer = server.speech(input=sentence, voice=voice, response_format="pcm")
        assert answer.status_code == 200, answer.text
        rate = int(answer.headers["x-sample-rate"])
        heard.append(transcribe(np.frombuffer(answer.content, dtype="<i2"), rate))
    for voice_index, voice in enumerate(voices):
        own = slice(voice_index, None, len(voices))
        tell.append(f"{voice}: word error rate {word_error_rate(sentences[own], heard[own]):.3f}")
    error_rate = word_error_rate(sentences, heard)
    tell.append(f"all {len(sentences)} sentences: word error rate {error_rate:.3f}")
    assert error_rate <= WORST_WER


def pitch_hz(samples: Samples, sample_rate: int) -> float:
    return float(2 ** speaker_vector(samples, sample_rate)[-2])


def test_a_reference_recording_is_followed(server: Server) -> None:
    """The reference is a voice that plays a sixth faster, so that no stock voice sounds like it."""
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
