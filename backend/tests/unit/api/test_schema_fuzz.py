"""Random requests: the OpenAPI document describes every response, and no message breaks a socket.

Requests come from the document itself (Schemathesis), valid ones and ones that break it; messages
of the WebSockets from a list of what clients might send, in any order (Hypothesis).
`make test-long` runs more of both.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fake_service import FakeService, eventually, expected_pcm
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from live_server import Server, running
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from socket_client import client
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from cantata.api.app import create_app
from cantata.api.settings import JobSettings, ReferenceSettings, SecuritySettings, ServerSettings
from cantata.api.speech.messages import SERVER_MESSAGES
from cantata.audio.pcm import encode_s16le
from tiers import scaled

CASES = scaled(300, 10_000)
"""HTTP requests in all."""
CONVERSATIONS = scaled(25, 250)
"""With each WebSocket."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
MAX_MESSAGE_BYTES = 32 << 10
SOCKETS = {
    "native": "/v1/audio/speech/stream",
    "deepgram": "/v1/speak",
    "deepgram listening": "/v1/listen?encoding=linear16&sample_rate=16000",
    "elevenlabs": "/v1/text-to-speech/clara/stream-input",
    "elevenlabs contexts": "/v1/text-to-speech/clara/multi-stream-input",
}


def hurried(examples: int) -> settings:
    """The same examples in every run, none of them kept or made smaller."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )


def can_be_asked_wrongly(operation: Any) -> bool:
    """Whether some input has a wrong form. No name in a path has: Schemathesis would try a thousand
    for each operation, in a CPU second, and find none."""
    names = all(
        parameter.definition["schema"].keys() <= {"type", "title"}
        for parameter in operation.path_parameters
    )
    return bool(operation.body or operation.query) or not names


@pytest.mark.long
def test_the_document_is_true_of_every_answer(tmp_path: Path) -> None:
    voices = ServerSettings(
        references=ReferenceSettings(voices_dir=tmp_path),
        jobs=JobSettings(tmp_path / "jobs"),
        # As Schemathesis calls it.
        security=SecuritySettings(allowed_hosts=("testserver",)),
    )
    app = create_app(FakeService(), voices)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    operations = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
    asked, answered = Counter[str](), Counter[int]()

    def ask(case: Case) -> None:  # type: ignore[type-arg]
        response = case.call()
        case.validate_response(response, checks=CHECKS)
        asked[f"{case.method} {case.path}"] += 1
        answered[response.status_code] += 1

    with_input = [one for one in operations if one.body or one.query or one.path_parameters]
    examples = 1 + 2 * CASES // (3 * len(with_input))  # about half of them can be asked wrongly
    for operation in operations:
        hurried(examples)(given(operation.as_strategy(GenerationMode.POSITIVE))(ask))()
        if can_be_asked_wrongly(operation):
            hurried(examples)(given(operation.as_strategy(GenerationMode.NEGATIVE))(ask))()
    assert len(asked) == len(operations)
    assert asked.total() >= CASES, asked
    assert {200, 400, 404} <= set(answered), answered
    assert 503 not in answered


class Sent:
    """One message and whether every server must reject it."""

    def __init__(self, message: str | bytes, *, bad: bool = False) -> None:
        self.message = message
        self.bad = bad
        self.huge = len(message) > MAX_MESSAGE_BYTES
        self.closes = '"session.close"' in str(message)

    def __repr__(self) -> str:
        return f"{self.message[:60]!r}"


def spoken(**fields: Any) -> Sent:
    return Sent(json.dumps(fields))


WRONG = [
    Sent(message, bad=True)
    for message in (
        "",
        "{",
        "[]",
        "null",
        "0",
        '"x"',
        "{}",
        '{"type": null}',
        '{"type": ["input.text"]}',
        '{"type": "input.text", "text": "\\ud800"}',
        '{"type": "input.text", "text": 1e999}',
        '{"type": "session.config", "speed": NaN}',
        '{"type": "session.config", "seed": 1' + "0" * 500 + "}",
        '{"type": "no.such.type"}',
        "[" * 5000,
        '{"a":' * 5000,
        b"",
        b"\x00\xff",
        bytes(5000),
    )
]
MESSAGES: dict[str, list[Sent]] = {
    "native": [
        spoken(type="session.config"),
        spoken(type="session.config", split_granularity="sentence", timestamps=True),
        spoken(type="session.config", voice="nobody"),
        spoken(type="input.text", text="One. Two? And th"),
        spoken(type="input.text", text="x" * 201),
        spoken(type="input.text", text="\x00\u202e\U0001f600"),
        spoken(type="input.text", text="[pause 1s] [pause 99s]"),
        spoken(type="input.done", context_id="c"),
        spoken(type="input.commit"),
        spoken(type="input.cancel"),
        spoken(type="session.close"),
    ],
    "deepgram": [
        spoken(type="Speak", text="One. Two? And th"),
        spoken(type="Speak", text="..."),
        spoken(type="Speak", text="x" * 201),
        spoken(type="Speak"),
        spoken(type="Flush"),
        spoken(type="Clear"),
        spoken(type="Close"),
    ],
    "deepgram listening": [
        Sent(bytes(1000)),
        Sent(b"\x00\x7f" * 5001),
        spoken(type="KeepAlive"),
        spoken(type="Finalize"),
        spoken(type="CloseStream"),
    ],
    "elevenlabs": [
        spoken(text=" "),
        spoken(text="One. Two? And th", flush=True),
        spoken(text="One. ", try_trigger_generation=True, voice_settings={"speed": 2}),
        spoken(text="One. ", voice_settings={"speed": 99}),
        spoken(text="x" * 201),
        spoken(text=5),
        spoken(text=""),
    ],
    "elevenlabs contexts": [
        spoken(text=" ", context_id="a"),
        spoken(text="One. Two? And th", context_id="a", flush=True),
        spoken(text="One. Two? And th", context_id="b"),
        spoken(text="", context_id="b"),
        spoken(context_id="a", close_context=True),
        spoken(context_id="nobody", close_context=True),
        spoken(context_id=7, close_context="yes"),
        spoken(close_socket=True),
    ],
}
HUGE = Sent("x" * (MAX_MESSAGE_BYTES + 1), bad=True)


def conversations(kind: str) -> st.SearchStrategy[list[Sent]]:
    anything = st.one_of(
        st.sampled_from(MESSAGES[kind]),
        st.sampled_from(MESSAGES[kind]),
        st.sampled_from(WRONG),
        st.sampled_from([*WRONG, HUGE]),
        st.text(max_size=40).map(Sent),
        st.binary(max_size=40).map(Sent),
    )
    return st.lists(anything, max_size=12)


@pytest.mark.long
@pytest.mark.parametrize("kind", SOCKETS)
def test_no_conversation_hurts_a_server(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    with asyncio.Runner() as runner:
        limits = ServerSettings(max_message_bytes=MAX_MESSAGE_BYTES)
        serving = running(FakeService(), limits)
        server = runner.run(serving.__aenter__())
        runner.run(eventually(lambda: server.service.ready))

        @hurried(CONVERSATIONS)
        @given(conversation=conversations(kind))
        def converse(conversation: list[Sent]) -> None:
            runner.run(hold(server, kind, conversation))

        try:
            converse()
        finally:
            runner.run(serving.__aexit__(None, None, None))
    assert not caplog.records, [record.getMessage() for record in caplog.records]


async def hold(server: Server, kind: str, conversation: list[Sent]) -> None:
    url = server.url.replace("http", "ws") + SOCKETS[kind]
    async with connect(url, max_size=None) as socket:
        listening = asyncio.create_task(listen(socket))
        with contextlib.suppress(ConnectionClosed):
            for sent in conversation:
                await socket.send(sent.message)
            if kind == "native":
                await socket.send('{"type": "session.close"}')
                await asyncio.wait_for(socket.wait_closed(), 10)
    heard = await listening
    if kind == "native":
        check(conversation, heard, socket.close_code)
    await eventually(lambda: server.solo.counts.open == 0)
    async with client(server.socket_url) as c:
        await c.configure()
        await c.speak("still well")
        assert c.pcm == encode_s16le(expected_pcm("still well", server.solo.behaviour))


async def listen(socket: ClientConnection) -> list[dict[str, Any]]:
    heard = []
    with contextlib.suppress(ConnectionClosed):
        while True:
            if isinstance(message := await socket.recv(), str):
                heard.append(json.loads(message))
    return heard


def check(conversation: list[Sent], heard: list[dict[str, Any]], code: int | None) -> None:
    """Every invalid message gets its typed error, and the session ends as its messages ask."""
    for message in heard:
        SERVER_MESSAGES.validate_python(message)
    ends = [place for place, sent in enumerate(conversation) if sent.closes or sent.huge]
    before_end = conversation[: ends[0]] if ends else conversation
    errors = [message["error"]["code"] for message in heard if message["type"] == "error"]
    if ends and conversation[ends[0]].huge:
        assert code == 1009
        return
    assert len(errors) >= sum(sent.bad for sent in before_end)
    assert "internal_error" not in errors
    assert code in (1000, 1009)
    assert [m for m in heard if m["type"] == "session.done"] or code == 1009
