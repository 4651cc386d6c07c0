"""Cascades whose answers a model of the server writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from endpoints import Endpoints
from fake_chat import FakeChatModel
from fake_service import FakeService, eventually
from live_server import Server, running

from cantata.api.settings import ServerSettings
from cantata.contract.data.chat import Modality, Role, TextPart
from cantata.speech_input.settings import RealtimeSettings
from talking import Event, Talker, talker

ANSWERED = "The answer of a served model."


@pytest.fixture
def writing() -> FakeChatModel:
    writer = FakeChatModel("writer", frozenset({Modality.TEXT}), (), 0)
    writer.behaviour.text = ANSWERED
    return writer


@pytest.fixture
def service(writing: FakeChatModel) -> FakeService:
    service = FakeService()
    service.chat_models = {**service.chat_models, "writer": writing}
    return service


@pytest.fixture
async def server(service: FakeService, limits: RealtimeSettings) -> AsyncIterator[Server]:
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        yield server


async def answered(c: Talker, words: str) -> Event:
    await c.write(words)
    await c.send("response.create")
    return dict((await c.until("response.done"))["response"])


def texts(writing: FakeChatModel) -> list[tuple[Role, str]]:
    messages = writing.counts.requests[-1].messages
    return [(m.role, p.text) for m in messages for p in m.parts if isinstance(p, TextPart)]


@pytest.mark.parametrize(("query", "name"), [("", "solo"), ("?model=writer", "writer")])
async def test_a_served_model_writes_what_the_voice_says(
    server: Server, service: FakeService, writing: FakeChatModel, query: str, name: str
) -> None:
    async with talker(server.url, query) as c:
        session = await c.update(instructions="Be brief.", max_output_tokens=77)
        assert session["model"] == name
        response = await answered(c, "Hello there.")
        assert response["status"] == "completed"
        assert response["output"][0]["content"][0]["transcript"] == ANSWERED
        assert c.sound()
        await answered(c, "And now?")
    assert texts(writing) == [
        (Role.SYSTEM, "Be brief."),
        (Role.USER, "Hello there."),
        (Role.ASSISTANT, ANSWERED),
        (Role.USER, "And now?"),
    ]
    assert {request.max_tokens for request in writing.counts.requests} == {77}
    assert "".join(request.text for request in service.solo.counts.requests) == ANSWERED * 2


async def test_an_endpoint_that_is_named_comes_first(
    others: Endpoints, limits: RealtimeSettings, service: FakeService, writing: FakeChatModel
) -> None:
    settings = ServerSettings(realtime=replace(limits, chat=others.chat))
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        async with talker(server.url) as c:
            await answered(c, "Hello.")
        assert not writing.counts.requests
        async with talker(server.url, "?model=writer") as c:
            await answered(c, "Hello.")
        assert writing.counts.requests


async def test_a_cancel_stops_both(
    server: Server, service: FakeService, writing: FakeChatModel
) -> None:
    writing.behaviour.text = "One two three four five. " * 400
    async with talker(server.url) as c:
        await c.write("Go on.")
        await c.send("response.create")
        await c.until("response.output_audio_transcript.delta")
        await c.send("response.cancel")
        assert (await c.until("response.done"))["response"]["status"] == "cancelled"
        await eventually(lambda: writing.counts.open == service.solo.counts.open == 0)
    assert writing.counts.aborted == 1


async def test_of_a_long_conversation_it_gets_the_end(
    server: Server, writing: FakeChatModel
) -> None:
    writing.behaviour.max_messages = 3
    async with talker(server.url) as c:
        await c.update(instructions="Be brief.")
        for number in range(4):
            await c.write(f"Number {number}.")
        assert (await answered(c, "Last."))["status"] == "completed"
    told = texts(writing)
    assert told[0] == (Role.SYSTEM, "Be brief.")
    assert told[-1] == (Role.USER, "Last.")
    assert len(told) <= 3


async def test_a_long_conversation_fails_whole_if_it_is_to_stay_so(
    server: Server, writing: FakeChatModel
) -> None:
    writing.behaviour.max_messages = 2
    async with talker(server.url) as c:
        await c.update(truncation="disabled")
        for number in range(3):
            await c.write(f"Number {number}.")
        response = await answered(c, "Last.")
        error = response["status_details"]["error"]
        assert (response["status"], error["code"]) == ("failed", "context_length_exceeded")
        await c.update(truncation="auto")
        await c.send("response.create")
        assert (await c.until("response.done"))["response"]["status"] == "completed"
