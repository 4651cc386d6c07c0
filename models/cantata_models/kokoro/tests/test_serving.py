"""Through the service: what the stage makes, with times of words, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch

from cantata.audio.pcm import encode_s16le
from cantata.contract.data.request import SpeechRequest
from cantata_models.kokoro.request_builder import load_builder
from cantata_models.kokoro.tests.parity.scenarios import PLAIN, CheckpointKey
from cantata_models.kokoro.voice import load_voice
from served import served

pytestmark = pytest.mark.integration

TEXT = "She opened the letter, read it twice, and put it back. Nobody spoke."
FIELDS: tuple[dict[str, Any], ...] = (
    {},
    {"speed": 1.5},
    {"voice": "bf_emma"},
    {"voice_blend": "af_heart(2)+am_adam"},
)


@pytest.fixture(scope="module")
def url(
    checkpoints: dict[CheckpointKey, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with served(checkpoints[PLAIN], tmp_path_factory.mktemp("uploaded")) as address:
        yield address


def post(url: str, **fields: Any) -> httpx.Response:
    body = {"input": TEXT, "voice": "af_heart", "seed": 4, "response_format": "pcm", **fields}
    return httpx.post(f"{url}/v1/audio/speech", json=body, timeout=120)


@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_what_is_heard_is_what_the_stage_makes(
    url: str, checkpoints: dict[CheckpointKey, Path], fields: dict[str, Any]
) -> None:
    response = post(url, **fields)
    assert response.status_code == 200, response.text
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the stage's process
    voice = load_voice(checkpoints[PLAIN], torch.device("cpu"))
    options = {name: fields[name] for name in ("voice_blend",) if name in fields}
    request = SpeechRequest(
        TEXT, fields.get("voice", "af_heart"), fields.get("speed", 1.0), seed=4, options=options
    )
    pieces = load_builder(checkpoints[PLAIN]).build("r", request)
    made = [part.samples for piece in pieces for part in voice.synthesize(piece.inputs["voice"])]  # type: ignore[arg-type]
    torch.set_num_threads(threads)
    assert response.content == encode_s16le(np.concatenate(made))


def test_a_bad_mixture_is_refused_with_the_voices(url: str) -> None:
    response = post(url, voice_blend="af_heart+nobody")
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["param"] == "voice_blend"
    assert "voices: af_heart, am_adam, bf_emma" in error["message"]
