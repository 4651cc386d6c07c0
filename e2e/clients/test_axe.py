"""axe finds no barrier on any tab of the page, on a phone and on a desktop, in both schemes."""

from __future__ import annotations

import json
import subprocess

import httpx
import pytest

from .conftest import PYTHON, ROOT, Address

pytestmark = pytest.mark.e2e


def test_axe_finds_nothing(server: Address) -> None:
    speech = {"model": "tts-1", "voice": "alloy", "input": "The old clock still works."}
    said = httpx.post(f"{server.http}/v1/audio/speech", json={**speech, "response_format": "wav"})
    sample = {"audio_sample": said.raise_for_status().content}
    owned = {"name": "Ada", "consent": "true"}
    voices = f"{server.http}/v1/audio/voices"
    httpx.post(voices, data=owned, files=sample, timeout=60).raise_for_status()  # to be listed
    command = [PYTHON, "-m", "e2e.axe", server.http]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == [], "\n".join(found)
