"""Deepgram's POST /v1/listen."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
from typing import Any

import httpx
import numpy as np
import pytest
from fake_service import eventually
from live_server import Server
from recorded_speech import RATE, encode, silence, speech, write_file

from cantata.api.settings import ServerSettings
from cantata.contract.data.errors import RequestFailed

TWICE = write_file(np.concatenate([speech(), silence(2), speech(), silence(1)]), "wav", "pcm_s16le")


async def post(http: httpx.AsyncClient, data: bytes, **query: Any) -> httpx.Response:
    return await http.post("/v1/listen", params=query, content=data)


async def listen(http: httpx.AsyncClient, data: bytes = TWICE, **query: Any) -> dict[str, Any]:
    response = await post(http, data, **query)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def only_alternative(answer: dict[str, Any]) -> dict[str, Any]:
    (channel,) = answer["results"]["channels"]
    (alternative,) = channel["alternatives"]
    return dict(alternative)


async def test_a_recording(server: Server, http: httpx.AsyncClient) -> None:
    answer = await listen(http)
    metadata = answer["metadata"]
    assert metadata["sha256"] == hashlib.sha256(TWICE).hexdigest()
    assert metadata["duration"] == pytest.approx(2 * 3.44 + 3, abs=0.05)
    assert (metadata["channels"], metadata["models"]) == (1, ["ears"])
    assert answer["results"]["channels"][0]["detected_language"] == "en"
    alternative = only_alternative(answer)
    assert alternative["transcript"].startswith("word0 word1")
    words = alternative["words"]
    assert [word["word"] for word in words] == alternative["transcript"].split()
    assert [word["start"] for word in words] == sorted(word["start"] for word in words)
    assert words[-1]["end"] > 5.4
    assert alternative["confidence"] == 0.75
    assert set(alternative) == {"transcript", "confidence", "words"}
    assert "utterances" not in answer["results"]
    counts = server.service.ears.counts
    assert (counts.finished, counts.open) == (2, 0)
    assert all(request.batch for request in counts.requests)


async def test_utterances_and_paragraphs(http: httpx.AsyncClient) -> None:
    # The fake hears words in the second before the speech, too, so the pause is long.
    sound = np.concatenate([speech(), silence(3), speech()])
    data = write_file(sound, "wav", "pcm_s16le")
    answer = await listen(http, data, utterances="true", paragraphs="true")
    first, second = answer["results"]["utterances"]
    assert first["end"] < second["start"]
    assert [word["word"] for word in first["words"]] == first["transcript"].split()
    assert len({first["id"], second["id"]}) == 2
    paragraphs = only_alternative(answer)["paragraphs"]
    assert paragraphs["transcript"].count("\n\n") == 1
    one, other = paragraphs["paragraphs"]
    assert one["num_words"] == len(first["words"])
    assert other["sentences"][0]["text"].startswith("word0")
    joined = await listen(http, utterances="true", utt_split=10)
    assert len(joined["results"]["utterances"]) == 2  # parts of a recording stay apart


async def test_parts_are_joined_as_their_language_writes_them(
    server: Server, http: httpx.AsyncClient
) -> None:
    server.service.ears.behaviour.text = "\u4eca\u5929\u4e0b\u96e8\u3002"
    alternative = only_alternative(await listen(http, punctuate="true"))
    assert alternative["transcript"] == server.service.ears.behaviour.text * 2


async def test_a_model_without_times_has_no_words(server: Server, http: httpx.AsyncClient) -> None:
    server.service.ears.behaviour.text = "Hello, there."
    answer = await listen(http, punctuate="true", utterances="true", paragraphs="true")
    alternative = only_alternative(answer)
    assert alternative["transcript"] == "Hello, there. Hello, there."
    assert alternative["words"] == []
    first, second = answer["results"]["utterances"]
    assert 0 <= first["start"] < first["end"] <= second["start"]
    # Not where its sound begins, which is a second before.
    assert second["start"] >= 3.44 + 2
    assert alternative["paragraphs"]["paragraphs"][0]["num_words"] == 2
    plain = only_alternative(await listen(http))
    assert plain["transcript"] == "hello there hello there"


async def test_options_reach_the_model(server: Server, http: httpx.AsyncClient) -> None:
    query: dict[str, Any] = {
        "language": "de",
        "keyterm": ["Cantata", "vLLM"],
        "keywords": "tea:2",
        "model": "ears",
    }
    answer = await listen(http, **query)
    assert "detected_language" not in answer["results"]["channels"][0]
    request = server.service.ears.counts.requests[0]
    assert (request.language, request.prompt) == ("de", "Cantata, vLLM, tea")
    for query in ({"language": "multi"}, {"language": "de", "detect_language": "true"}):
        await listen(http, TWICE, **query)
        assert server.service.ears.counts.requests[-1].language is None


@pytest.mark.parametrize("encoding", ["linear16", "mulaw", "alaw"])
async def test_bare_samples(server: Server, http: httpx.AsyncClient, encoding: str) -> None:
    data = encode(speech(8000), encoding, 8000)
    answer = await listen(http, data, encoding=encoding, sample_rate=8000)
    assert answer["metadata"]["duration"] == pytest.approx(3.44, abs=0.05)
    assert only_alternative(answer)["transcript"].startswith("word0")
    # Clients name the encoding of files, too.
    answer = await listen(http, TWICE, encoding=encoding, sample_rate=8000)
    assert server.service.ears.counts.finished == 3


async def test_silence_has_no_words(http: httpx.AsyncClient) -> None:
    data = write_file(silence(3), "wav", "pcm_s16le")
    answer = await listen(http, data, utterances="true", paragraphs="true")
    alternative = only_alternative(answer)
    assert (alternative["transcript"], alternative["confidence"]) == ("", 0)
    assert answer["results"]["utterances"] == []


@pytest.mark.parametrize(
    ("query", "data", "status", "code", "says"),
    [
        ({}, b"", 400, "Bad Request", "0 bytes"),
        ({}, b"this is no sound", 400, "Bad Request", "not a readable sound file; valid: WAV"),
        ({}, TWICE[:44], 400, "Bad Request", "cannot be decoded"),
        ({"encoding": "opus"}, TWICE, 400, "Bad Request", "linear16"),
        ({"encoding": "linear16"}, TWICE, 400, "Bad Request", "sample_rate is required"),
        ({"encoding": "mulaw", "sample_rate": 99}, TWICE, 400, "Bad Request", "8000"),
        ({"language": "xx"}, TWICE, 400, "Bad Request", "valid: en, de, multi"),
        ({"utt_split": "nan"}, TWICE, 400, "Bad Request", "utt_split"),
        ({"callback": "http://localhost"}, TWICE, 400, "Bad Request", "callback"),
        ({"model": "nobody"}, TWICE, 404, "NOT_FOUND", "served: ears"),
    ],
    ids=lambda value: f"{len(value)} bytes" if isinstance(value, bytes) else None,
)
async def test_wrong_requests(
    server: Server,
    http: httpx.AsyncClient,
    query: dict[str, Any],
    data: bytes,
    status: int,
    code: str,
    says: str,
) -> None:
    response = await post(http, data, **query)
    error = response.json()
    assert (response.status_code, error["err_code"]) == (status, code), error
    assert says in error["err_msg"]
    assert error["request_id"] == response.headers["x-request-id"]
    assert not server.service.ears.counts.finished


async def test_a_url_is_fetched_only_if_the_server_does_that(http: httpx.AsyncClient) -> None:
    async def ask(**body: Any) -> httpx.Response:
        return await http.post("/v1/listen", json=body)

    refused = await ask(url="http://localhost/speech.wav")
    assert refused.status_code == 400
    assert "does not fetch URLs" in refused.json()["err_msg"]
    assert "url is required" in (await ask(uri="x")).json()["err_msg"]
    assert (await ask(url="x" * 100_000)).status_code == 413
    inline = base64.b64encode(TWICE).decode()
    assert len(inline) > 100_000
    short = write_file(speech()[:RATE], "ogg", "libopus", 48000)
    url = f"data:audio/ogg;base64,{base64.b64encode(short).decode()}"
    answer = await ask(url=url)
    assert answer.status_code == 200, answer.text
    assert answer.json()["metadata"]["sha256"] == hashlib.sha256(short).hexdigest()


@pytest.mark.parametrize("settings", [ServerSettings(max_recording_bytes=100_000)])
async def test_a_recording_that_is_too_large(server: Server, http: httpx.AsyncClient) -> None:
    response = await post(http, bytes(1 << 20))
    assert (response.status_code, response.json()["err_code"]) == (413, "PAYLOAD_TOO_LARGE")

    async def unannounced() -> Any:
        for _ in range(20):
            yield bytes(10_000)

    response = await http.post("/v1/listen", content=unannounced())
    assert response.status_code == 413


async def test_an_upload_that_is_cut_leaves_nothing(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    address = httpx.URL(server.url)
    _, writer = await asyncio.open_connection(address.host, address.port)
    head = f"POST /v1/listen HTTP/1.1\r\nhost: {address.host}\r\ncontent-length: 900000\r\n\r\n"
    writer.write(head.encode() + TWICE[:50_000])
    await writer.drain()
    writer.transport.abort()
    async with httpx.AsyncClient(base_url=server.url, timeout=60, verify=False) as http:
        assert only_alternative(await listen(http))["transcript"]
    assert server.service.ears.counts.finished == 2
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_failure_has_deepgrams_form(server: Server, http: httpx.AsyncClient) -> None:
    server.service.ears.behaviour.error = RequestFailed("it broke")
    response = await post(http, TWICE)
    assert response.status_code == 500
    assert response.json()["err_msg"] == "it broke"
    await eventually(lambda: server.service.ears.counts.open == 0)


async def test_a_client_that_leaves_ends_the_work(server: Server, http: httpx.AsyncClient) -> None:
    ears = server.service.ears
    ears.behaviour.may_finish = asyncio.Event()
    request = asyncio.create_task(post(http, TWICE))
    await eventually(lambda: ears.counts.open > 0)
    request.cancel()
    await eventually(lambda: ears.counts.open == 0)
    assert not ears.counts.finished
