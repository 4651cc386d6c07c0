"""Texts of several speakers: a recording or an uploaded voice for each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_service import FakeService, eventually
from live_server import Server, running

from cantata.api.settings import ReferenceSettings, ServerSettings
from cantata.contract.data.capabilities import Capabilities
from sounds import data_url, wav

SPEECH, BATCH, VOICES = "/v1/audio/speech", "/v1/audio/speech/batch", "/v1/audio/voices"
TWO = [data_url(wav(2)), data_url(wav(3))]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """`solo` follows up to two recordings, `duo` none."""
    service = FakeService()
    service.solo.capabilities = Capabilities(references=True, max_references=2)
    settings = ServerSettings(references=ReferenceSettings(voices_dir=tmp_path / "voices"))
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server
        await eventually(lambda: service.solo.counts.open == 0)


async def upload(http: httpx.AsyncClient, name: str, seconds: float) -> str:
    form = {"name": name, "consent": "true", "ref_text": f"{name} speaks."}
    made = await http.post(VOICES, data=form, files={"audio_sample": ("a.wav", wav(seconds))})
    assert made.status_code == 200, made.text
    voice: str = made.json()["id"]
    return voice


def followed(server: Server) -> list[tuple[float, str | None]]:
    """Of the last request: seconds of each recording, and what is said there."""
    references = server.solo.counts.requests[-1].references
    return [(len(r.samples) / r.sample_rate, r.transcript) for r in references]


async def test_recordings_reach_the_model_by_speaker(
    server: Server, http: httpx.AsyncClient
) -> None:
    for ref_text, transcripts in ((["One.", "Two."], ("One.", "Two.")), (None, (None, None))):
        body = {"input": "hi", "ref_audio": TWO, "ref_text": ref_text}
        assert (await http.post(SPEECH, json=body)).status_code == 200
        assert followed(server) == [(2.0, transcripts[0]), (3.0, transcripts[1])]
    body = {"input": "hi", "ref_audio": TWO[1:], "ref_text": ["Two."]}
    assert (await http.post(SPEECH, json=body)).status_code == 200
    assert followed(server) == [(3.0, "Two.")]


async def test_uploaded_voices_reach_the_model_by_speaker(
    server: Server, http: httpx.AsyncClient
) -> None:
    ada, bob = await upload(http, "Ada", 2), await upload(http, "Bob", 3)
    expected = [(2.0, "Ada speaks."), (3.0, "Bob speaks.")]
    for names, validated in (([ada, "bob"], 1), ([{"id": bob}, "Ada"], -1)):
        assert (await http.post(SPEECH, json={"input": "hi", "voice": names})).status_code == 200
        assert followed(server) == expected[::validated]
    lines = await http.post(
        BATCH, json={"requests": [{"custom_id": "a", "input": "hi", "voice": ["bob", "ada"]}]}
    )
    assert "error" not in lines.json(), lines.text
    assert followed(server) == expected[::-1]


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"ref_audio": [*TWO, TWO[0]]}, "ref_audio", "a list of 3 speakers; solo follows 1 to 2"),
        ({"ref_audio": TWO, "ref_text": ["a"]}, "ref_text", "not a list of 1"),
        ({"ref_audio": TWO, "ref_text": "a"}, "ref_text", "not one text"),
        ({"ref_audio": TWO[0], "ref_text": ["a"]}, "ref_text", "ref_audio is one recording"),
        ({"ref_text": ["a"]}, "ref_text", "send both"),
        ({"ref_audio": [TWO[0], "data:,"]}, "ref_audio", ""),
        ({"ref_audio": []}, "ref_audio", "a list of 0 speakers"),
        ({"voice": []}, "voice", "a list of 0 speakers"),
        ({"ref_audio": TWO, "ref_text": ["a", None]}, "ref_text", "valid string"),
        ({"ref_audio": TWO, "model": "duo"}, "ref_audio", "duo cannot speak like a recording"),
        ({"voice": ["Ada", "nobody"]}, "voice", "no voice 'nobody'"),
        ({"voice": ["Ada", "clara"]}, "voice", "'clara' is one of the model's own"),
        ({"voice": ["Ada"] * 3}, "voice", "a list of 3 speakers; solo follows 1 to 2"),
        ({"voice": ["Ada"], "ref_audio": TWO[0]}, "ref_audio", "not both"),
        ({"voice": ["Ada"], "ref_text": "a"}, "ref_text", "not both"),
        ({"voice": ["Ada"], "model": "duo"}, "voice", "duo cannot speak like a recording"),
        ({"voice": [5]}, "voice", ""),
    ],
)
async def test_what_is_no_list_of_speakers_is_refused(
    server: Server, http: httpx.AsyncClient, fields: dict[str, Any], param: str, message: str
) -> None:
    await upload(http, "Ada", 2)
    answer = await http.post(SPEECH, json={"input": "hi", **fields})
    error = answer.json()["error"]
    assert answer.status_code == 400, error
    assert error["param"].split("[")[0] == param
    assert message in error["message"]
    assert not server.solo.counts.requests


async def test_a_recording_finds_the_model_that_follows_it(
    server: Server, http: httpx.AsyncClient
) -> None:
    """The default model speaks with its own voices only. One that is named is not replaced."""
    service = server.service
    service.default_model = "duo"
    ada = await upload(http, "Ada", 2)
    for body in (
        {"ref_audio": TWO[0]},
        {"voice": "ada"},
        {"voice": [ada]},
        {"model": "tts-1", "voice": ada},
    ):
        before = len(server.solo.counts.requests)
        assert (await http.post(SPEECH, json={"input": "hi", **body})).status_code == 200, body
        assert len(server.solo.counts.requests) == before + 1, body
    named = await http.post(SPEECH, json={"input": "hi", "model": "duo", "ref_audio": TWO[0]})
    assert named.status_code == 400
    assert "cannot speak like a recording" in named.text
