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
from cantata_models.kokoro.tests.parity.scenarios import PLAIN, KokoroCheckpointKey
from cantata_models.kokoro.voice import load_voice
from served import served

pytestmark = pytest.mark.integration

TEXT = "She opened the letter, read it twice, and put it back. Nobody spoke."
FIELDS: tuple[dict[str, Any], ...] = (
    {},
    {"speed": 1.5},
    {"voice": "bf_emma"},
    {"voice": "af_heart(2)+am_adam"},
)


@pytest.fixture(scope="module")
def url(
    checkpoints: dict[KokoroCheckpointKey, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with served(checkpoints[PLAIN], tmp_path_factory.mktemp("uploaded")) as address:
        yield address


def post(url: str, **fields: Any) -> httpx.Response:
    body = {"input": TEXT, "voice": "af_heart", "seed": 4, "response_format": "pcm", **fields}
    return httpx.post(f"{url}/v1/audio/speech", json=body, timeout=120)


@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_what_is_heard_is_what_the_stage_makes(
    url: str, checkpoints: dict[KokoroCheckpointKey, Path], fields: dict[str, Any]
) -> None:
    response = post(url, **fields)
    assert response.status_code == 200, response.text
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the stage's process
    voice = load_voice(checkpoints[PLAIN], torch.device("cpu"))
    voice_name, speed = fields.get("voice", "af_heart"), fields.get("speed", 1.0)
    request = SpeechRequest(TEXT, voice_name, speed, seed=4)
    pieces = load_builder(checkpoints[PLAIN]).build("r", request)
    made = [part.samples for piece in pieces for part in voice.synthesize(piece.inputs["voice"])]  # type: ignore[arg-type]
    torch.set_num_threads(threads)
    assert response.content == encode_s16le(np.concatenate(made))


@pytest.mark.parametrize("wrong", ["af_heart+nobody", "af_heart(0)+am_adam", "af_heart(-1)"])
def test_a_bad_mixture_is_refused(url: str, wrong: str) -> None:
    response = post(url, voice=wrong)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["param"] == "voice"
    assert ("nobody" in error["message"]) == ("nobody" in wrong)
