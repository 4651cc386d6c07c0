"""Answers of a model whose stages are processes: whole, streamed, left, and in a spoken session."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import ANY

import httpx
import pytest
import pytest_asyncio

from cantata.api.app import create_app
from cantata.api.server.listening import get_url, listen
from cantata.api.server.serve import make_server
from cantata.config import load_deployment
from cantata.config.plugins import LocatedModel
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import create_service
from sounds import wav
from talking import speech, talker
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.omni import MAX_HEARD, PLUGIN

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

CHAT = "/v1/chat/completions"
SPOKEN = {"modalities": ["text", "audio"], "audio": {"format": "pcm16"}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(folder)
    located = LocatedModel(PLUGIN, folder)
    deployment = load_deployment(PLUGIN.deployment, located.pipeline)
    app = create_app(create_service(ServicePlan(located, located.pipeline, deployment)))
    listener = listen("127.0.0.1", 0)
    server = make_server(app)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    async with httpx.AsyncClient(base_url=get_url(listener), timeout=60, verify=False) as client:
        async with asyncio.timeout(120):
            await app.state.context.lifecycle.settled.wait()
        yield client
    server.stop()
    await serving
    listener.close()


def asking(*parts: dict[str, Any], **options: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": "What is the time?"}, *parts]
    return {
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 30,
        "seed": 5,
        "temperature": 0.8,
        **options,
    }


async def whole(http: httpx.AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
    response = await http.post(CHAT, json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def until_free(http: httpx.AsyncClient) -> None:
    """Wait until no stage holds anything."""
    async with asyncio.timeout(60):
        while True:
            stages = (await http.get("/health")).json()["stages"]
            if not any(any(stage["counts"].values()) for stage in stages):
                return
            await asyncio.sleep(0.01)


async def test_whole_and_streamed_answers_are_the_same(http: httpx.AsyncClient) -> None:
    written = await whole(http, asking())
    spoken = await whole(http, asking(**SPOKEN))
    audio = spoken["choices"][0]["message"]["audio"]
    assert audio["transcript"] == written["choices"][0]["message"]["content"] != ""
    response = await http.post(CHAT, json=asking(**SPOKEN, stream=True))
    events = response.text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(event.removeprefix("data: "))["choices"][0] for event in events[:-2]]
    deltas = [chunk["delta"].get("audio", {}) for chunk in chunks]
    assert "".join(delta.get("transcript", "") for delta in deltas) == audio["transcript"]
    sound = b"".join(base64.b64decode(delta.get("data", "")) for delta in deltas)
    assert sound == base64.b64decode(audio["data"]) != b""
    assert chunks[-1]["finish_reason"] == spoken["choices"][0]["finish_reason"]
    await until_free(http)


async def test_sound_is_heard(http: httpx.AsyncClient) -> None:
    encoded = base64.b64encode(wav(0.002, 16_000)).decode()
    part = {"type": "input_audio", "input_audio": {"data": encoded, "format": "wav"}}
    heard, unheard = await whole(http, asking(part)), await whole(http, asking())
    tokens = heard["usage"]["prompt_tokens"] - unheard["usage"]["prompt_tokens"]
    assert tokens == 32
    assert heard["choices"] != unheard["choices"]


async def test_penalties_of_used_tokens_reach_the_thinker(http: httpx.AsyncClient) -> None:
    def most_used(answer: dict[str, Any]) -> int:
        text = answer["choices"][0]["message"]["content"]
        return max(Counter(text).values())

    plain = await whole(http, asking(temperature=0))
    assert await whole(http, asking(temperature=0, presence_penalty=0)) == plain | {
        "id": ANY,
        "created": ANY,
    }
    varied = await whole(http, asking(temperature=0, frequency_penalty=2, presence_penalty=1))
    assert most_used(varied) < most_used(plain)


async def test_a_stop_text_frees_every_stage(http: httpx.AsyncClient) -> None:
    text = (await whole(http, asking()))["choices"][0]["message"]["content"]
    answer = await whole(http, asking(stop=text[3:5]))
    assert answer["choices"][0]["message"]["content"] == text[: text.index(text[3:5])]
    assert answer["choices"][0]["finish_reason"] == "stop"
    await until_free(http)


async def test_a_client_that_leaves_frees_every_stage(http: httpx.AsyncClient) -> None:
    body = asking(**SPOKEN, stream=True, max_tokens=200)
    async with http.stream("POST", CHAT, json=body) as response:
        async for line in response.aiter_lines():
            if '"data"' in line:
                break
    await until_free(http)


async def test_it_is_listed_and_speaks_no_plain_texts(http: httpx.AsyncClient) -> None:
    (model,) = (await http.get("/v1/models")).json()["data"]
    assert model["id"] == PLUGIN.name
    assert (model["input_modalities"], model["output_modalities"]) == (
        ["text", "audio"],
        ["text", "audio"],
    )
    refused = await http.post("/v1/audio/speech", json={"input": "hello"})
    assert refused.status_code == 404
    refused = await http.post(CHAT, json=asking({"type": "image_url", "image_url": {"url": "a"}}))
    assert refused.json()["error"]["param"] == "messages[0].content[1].type"


async def test_a_spoken_session_hears_speaks_and_remembers(http: httpx.AsyncClient) -> None:
    async with talker(str(http.base_url).rstrip("/")) as c:
        session = await c.update(instructions="Hello.", max_output_tokens=20)
        assert session["model"] == PLUGIN.name
        asked = []
        for _ in range(2):
            c.events.clear()
            await c.say(speech())
            response = (await c.until("response.done"))["response"]
            assert response["status"] in ("completed", "incomplete"), response
            (part,) = response["output"][0]["content"]
            assert 10 <= response["usage"]["output_token_details"]["text_tokens"] <= 20
            assert part["transcript"]
            assert c.sound()
            asked.append(response["usage"]["input_tokens"])
        first, second = asked
        assert first >= len("Hello.") + MAX_HEARD, "the sound was heard"
        assert second >= first + len(part["transcript"]) + MAX_HEARD, "with all before it"
        # The same conversation in writing: no stage that speaks takes part.
        c.events.clear()
        await c.send("response.create", response={"output_modalities": ["text"]})
        response = (await c.until("response.done"))["response"]
        assert response["output"][0]["content"][0]["text"]
        assert not c.sound()
        # More than the thinker has positions for: what came before is left out.
        await c.write("x" * 220)
        await c.send("response.create", response={"output_modalities": ["text"]})
        response = (await c.until("response.done"))["response"]
        assert response["usage"]["input_tokens"] == len("Hello.") + 220
    await until_free(http)
