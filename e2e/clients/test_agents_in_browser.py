"""OpenAI's Agents SDK in a browser, unmodified: over WebRTC, with a client secret."""

from __future__ import annotations

import json
import subprocess
import wave
from pathlib import Path

import numpy as np
import openai
import pytest
import soxr

from .conftest import PYTHON, ROOT, Address
from .conversing import RATE, Answer, spoken
from .listening import KEY, decode

pytestmark = pytest.mark.e2e

CONNECTING_S = 3
"""The microphone is open for no longer than this before the call is."""
QUIET = 300
"""Of 32,767: what surrounds the speech."""


def test_a_spoken_turn(server: Address, tmp_path: Path) -> None:
    client = openai.OpenAI(base_url=f"{server.http}/v1", api_key=KEY)
    secret = client.realtime.client_secrets.create(
        session={"type": "realtime", "audio": {"output": {"voice": "marin"}}},
        expires_after={"anchor": "created_at", "seconds": 120},
    )
    question = tmp_path / "question.wav"
    with wave.open(str(question), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(bytes(2 * RATE * CONNECTING_S) + spoken(server))
    turn = [PYTHON, "-m", "e2e.agents_in_browser", server.http, secret.value, question, tmp_path]
    done = subprocess.run(turn, cwd=ROOT, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["errors"] == []
    heard, rate = decode((tmp_path / "heard.webm").read_bytes())
    (loud,) = np.nonzero(np.abs(heard) > QUIET)
    speech = np.pad(heard[loud[0] : loud[-1]].astype(np.float32), rate // 10)
    sound = soxr.resample(speech, rate, RATE).astype("<i2").tobytes()
    Answer(sound, printed["text"]).assert_understood()
