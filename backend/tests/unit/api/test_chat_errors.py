"""POST /v1/chat/completions: everything that is rejected, and how."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fake_service import eventually
from live_server import Server
from test_chat import CHAT, SPOKEN, asking

from cantata.api.chat.messages import MAX_MESSAGES, MAX_PARTS
from cantata.contract.data.errors import Overloaded


def part(kind: str, inside: Any) -> dict[str, Any]:
    """A message that is one part."""
    return {"messages": [{"role": "user", "content": [{"type": kind, kind: inside}]}]}


def message(**fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "Hi."}, fields]}


def tool(name: str, description: str | None = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description}}


def json_schema(**schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}


TOOL = tool("f")
NAMED = {"type": "function", "function": {"name": "g"}}


def called(call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}


PLACE = "messages[0].content[0]"
BAD_BODIES: list[tuple[dict[str, Any], str, str]] = [
    ({}, "messages", "required"),
    ({"messages": []}, "messages", "at least 1"),
    ({"messages": "Hi."}, "messages", "list"),
    ({"messages": ["Hi."]}, "messages[0]", ""),
    ({"messages": [{}]}, "messages[0].role", "required"),
    (message(role="tool", content="4", tool_call_id="c"), "messages[1].tool_call_id", "'c'"),
    (message(role="tool", content="4"), "messages[1].tool_call_id", "required"),
    (message(role="function", content="4"), "messages[1].role", "'tool'"),
    (message(role="user"), "messages[1].content", "required"),
    (message(role="user", content=None), "messages[1].content", "a string or a list"),
    (message(role="user", content=5), "messages[1].content", "a string or a list"),
    (message(role="user", content=[]), "messages[1].content", "at least 1"),
    (message(role="assistant"), "messages[1].content", "messages[1].audio"),
    (message(role="assistant", audio={"id": "audio_x"}), "messages[1].audio.id", "expired"),
    (message(role="assistant", audio="audio_x"), "messages[1].audio", ""),
    (message(role="assistant", tool_calls=[{}]), "messages[1].tool_calls[0].id", "required"),
    (
        {"model": "reader", **message(role="assistant", tool_calls=[called("c")])},
        "messages[1].tool_calls",
        "reader cannot call tools",
    ),
    (message(role="system", content=[{"type": "image_url"}]), "messages[1].content[0].type", ""),
    ({"messages": [{"role": "user", "content": [{}]}]}, f"{PLACE}.type", "required"),
    (part("smell", {}), f"{PLACE}.type", "'text', 'input_audio', 'image_url', 'audio_url'"),
    (part("text", 5), f"{PLACE}.text", "string"),
    (part("image_url", "http://a/b.png"), f"{PLACE}.image_url", "valid dictionary"),
    (part("image_url", {}), f"{PLACE}.image_url.url", "required"),
    (
        part("image_url", {"url": "data:,", "detail": "most"}),
        f"{PLACE}.image_url.detail",
        "'auto', 'low' or 'high'",
    ),
    (part("image_url", {"url": "cat.png"}), f"{PLACE}.image_url", "data:image/png;base64,"),
    (part("image_url", {"url": "http://a/b.png"}), f"{PLACE}.image_url", "does not fetch URLs"),
    (part("image_url", {"url": "data:image/png,abc"}), f"{PLACE}.image_url", "base64"),
    (part("image_url", {"url": "data:text/html;base64,aa"}), f"{PLACE}.image_url", "image/..."),
    (part("image_url", {"url": "data:image/png;base64,a"}), f"{PLACE}.image_url", "valid base64"),
    (part("image_url", {"url": "data:image/png;base64,YQ=="}), f"{PLACE}.image_url", "PNG, JPEG"),
    (part("audio_url", {"url": "file:///a.wav"}), f"{PLACE}.audio_url", "data:audio/wav;base64,"),
    (part("video_url", {"url": "https://a/b"}), f"{PLACE}.video_url", "data:video/mp4;base64,"),
    (part("video_url", {"url": "data:video/mp4;base64,YQ=="}), f"{PLACE}.video_url", "MP4"),
    (part("input_audio", {"data": "YQ=="}), f"{PLACE}.input_audio.format", "required"),
    (
        part("input_audio", {"data": "YQ==", "format": "ogg"}),
        f"{PLACE}.input_audio.format",
        "'wav' or 'mp3'",
    ),
    (part("input_audio", {"data": "!", "format": "wav"}), f"{PLACE}.input_audio", "valid base64"),
    (part("input_audio", {"data": "\u00e9", "format": "wav"}), f"{PLACE}.input_audio", "base64"),
    (part("input_audio", {"data": "", "format": "wav"}), f"{PLACE}.input_audio", "WAV, FLAC"),
    ({"messages": [{"role": "user", "content": "a"}] * (MAX_MESSAGES + 1)}, "messages", "1000"),
    (asking(modalities=[]), "modalities", "at least 1"),
    (asking(modalities=["text", "smell"]), "modalities[1]", "'text', 'audio' or 'image'"),
    (asking(modalities="audio"), "modalities", "list"),
    (asking(**SPOKEN, audio={"voice": "bob"}), "audio.voice", "valid: ethan, chelsie"),
    (asking(**SPOKEN, audio={"format": "ogg"}), "audio.format", "'wav', 'aac', 'mp3'"),
    (asking(**SPOKEN, audio="wav"), "audio", ""),
    (asking(**SPOKEN, model="reader"), "modalities", 'valid: ["text"]'),
    (asking(stop=["a"] * 5), "stop", "at most 4"),
    (asking(stop=""), "stop", "at least 1"),
    (asking(stop=["a", 5]), "stop[1]", "string"),
    (asking(stop=5), "stop", "a string or a list"),
    (asking(max_tokens=0), "max_tokens", "greater"),
    (asking(max_completion_tokens=1.5), "max_completion_tokens", "integer"),
    (asking(temperature=3), "temperature", "2"),
    (asking(top_p=0), "top_p", "greater than 0"),
    (asking(top_k=-2), "top_k", "-1"),
    (asking(repetition_penalty=0), "repetition_penalty", "greater than 0"),
    (asking(seed=-1), "seed", "greater"),
    (asking(stream="yes"), "stream", "boolean"),
    (asking(stream_options={"include_usage": 1}), "stream_options.include_usage", "boolean"),
    (asking(n=17), "n", "less than or equal to 16"),
    (asking(n=2, **SPOKEN), "n", "only one answer can be spoken; valid: 1"),
    (asking(presence_penalty=2.1), "presence_penalty", "2"),
    (asking(frequency_penalty=-3), "frequency_penalty", "-2"),
    (asking(logit_bias={"5": 1}), "logit_bias", "valid: {}"),
    (asking(logprobs=True), "logprobs", "valid: false"),
    (asking(top_logprobs=2), "top_logprobs", 'needs "logprobs": true'),
    (asking(reasoning_effort="low"), "reasoning_effort", 'valid: "none"'),
    (asking(reasoning_effort="much"), "reasoning_effort", "'none'"),
    (asking(model="reader", logit_bias={"x": 1}), "logit_bias.x", "pattern"),
    (asking(tools=[{"type": "function"}]), "tools[0].function", "required"),
    (asking(tools=[tool("two words")]), "tools[0].function.name", "pattern"),
    (asking(tools=[tool("f")] * 129), "tools", "at most 128"),
    (asking(tools=[tool("f", "d" * 1_000_000)]), "tools", "1000000 are read"),
    (asking(tools=[tool("f")], model="reader"), "tools", "valid: []"),
    (
        asking(chat_template_kwargs={"enable_thinking": True}),
        "chat_template_kwargs.enable_thinking",
        "valid: false",
    ),
    (asking(**SPOKEN, tools=[tool("f")]), "modalities", 'valid: ["text"]'),
    (asking(tool_choice="required"), "tool_choice", "there are no tools"),
    (asking(tools=[TOOL], tool_choice="required"), "tool_choice", 'valid: "none", "auto"'),
    (asking(tools=[TOOL], tool_choice="maybe"), "tool_choice", "'required'"),
    (asking(tools=[TOOL], tool_choice=NAMED), "tool_choice.function.name", "tools has no 'g'"),
    (asking(tools=[TOOL], parallel_tool_calls=False), "parallel_tool_calls", "valid: true"),
    (
        asking(model="reader", response_format={"type": "xml"}),
        "response_format.type",
        "json_schema",
    ),
    (
        asking(model="reader", response_format=json_schema(pad="x" * 100_000)),
        "response_format.json_schema.schema",
        "at most 100000 are read",
    ),
    (
        asking(response_format={"type": "json_object"}),
        "response_format",
        'valid: {"type": "text"}',
    ),
]


def to_error(response: httpx.Response) -> dict[str, Any]:
    body = response.json()
    assert set(body["error"]) == {"message", "type", "param", "code"}
    return dict(body["error"])


@pytest.mark.parametrize(("body", "param", "says"), BAD_BODIES)
async def test_what_is_wrong_and_where(
    asgi: httpx.AsyncClient, body: dict[str, Any], param: str, says: str
) -> None:
    response = await asgi.post(CHAT, json=body)
    error = to_error(response)
    assert response.status_code == 400, error
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert says in error["message"]
    assert param.split(".")[0] in error["message"] or "voice" in param


async def test_parts_that_a_model_does_not_take(asgi: httpx.AsyncClient) -> None:
    for kind, inside in (("video_url", {"url": "data:,"}), ("audio_url", {"url": "data:,"})):
        error = to_error(await asgi.post(CHAT, json={**part(kind, inside), "model": "reader"}))
        assert error["param"] == f"{PLACE}.type"
        assert "reader takes no" in error["message"]
        assert "it takes: text, image" in error["message"]


async def test_models_that_do_not_answer(asgi: httpx.AsyncClient) -> None:
    for name in ("solo", "gpt-9"):
        response = await asgi.post(CHAT, json={**asking(), "model": name})
        assert response.status_code == 404
        error = to_error(response)
        assert (error["code"], error["param"]) == ("model_not_found", "model")
        assert "omni, reader" in error["message"]


async def test_too_many_parts(asgi: httpx.AsyncClient) -> None:
    many = [{"type": "text", "text": "a"}] * 10_000
    body = {"messages": [{"role": "user", "content": many}]}
    error = to_error(await asgi.post(CHAT, json=body))
    assert error["param"] == "messages[0].content"
    assert f"at most {MAX_PARTS}" in error["message"]
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,YQ=="}}
    body = {"messages": [{"role": "user", "content": [picture] * 65}]}
    error = to_error(await asgi.post(CHAT, json=body))
    assert error["param"] == "messages[0].content[64]"
    assert "more than 64 files" in error["message"]


async def test_too_much_text(asgi: httpx.AsyncClient) -> None:
    half = "x" * 500_001
    parts = [{"type": "text", "text": half}]
    messages = [{"role": "user", "content": parts}, {"role": "user", "content": half}]
    error = to_error(await asgi.post(CHAT, json={"messages": messages}))
    assert error["param"] == "messages"
    assert "1000002 characters of text; at most 1000000" in error["message"]
    spoken = (await asgi.post(CHAT, json=asking(half, **SPOKEN, max_tokens=1))).json()
    audio_id = spoken["choices"][0]["message"]["audio"]["id"]
    context_text = "x" * 999_998
    messages = [
        {"role": "user", "content": context_text},
        {"role": "assistant", "audio": {"id": audio_id}},
    ]
    error = to_error(await asgi.post(CHAT, json={"messages": messages}))
    assert "1000001 characters" in error["message"]


async def test_text_that_is_no_unicode(asgi: httpx.AsyncClient) -> None:
    body = rb'{"messages": [{"role": "user", "content": "\ud800"}]}'
    response = await asgi.post(CHAT, content=body, headers={"content-type": "application/json"})
    error = to_error(response)
    assert error["param"] == "messages[0].content"
    assert "surrogate" in error["message"]


async def test_a_long_value_is_not_repeated(asgi: httpx.AsyncClient) -> None:
    body = part("image_url", {"url": "x" * (8 << 20), "detail": 1})
    error = to_error(await asgi.post(CHAT, json=body))
    assert error["param"] == f"{PLACE}.image_url.detail"
    error = to_error(await asgi.post(CHAT, json=asking(stop="x" * 100_000)))
    assert error["param"] == "stop"
    assert len(error["message"]) < 300


async def test_a_full_queue_is_429_before_the_body_is_read(
    server: Server, http: httpx.AsyncClient
) -> None:
    for model in (server.service.omni, server.service.reader):
        model.behaviour.full = True
    response = await http.post(CHAT, content=b"not even JSON")
    assert (response.status_code, response.headers["retry-after"]) == (429, "3")
    # Other models' queues are their own.
    spoken = await http.post("/v1/audio/speech", json={"input": "hello"})
    assert spoken.status_code == 200
    server.service.reader.behaviour.full = False
    response = await http.post(CHAT, json=asking())
    assert response.status_code == 429
    metrics = (await http.get("/metrics")).text
    assert "cantata_requests_rejected_total" in metrics


async def test_what_the_model_rejects(server: Server, http: httpx.AsyncClient) -> None:
    response = await http.post(CHAT, json=asking("\x00"))
    assert (response.status_code, to_error(response)["param"]) == (400, "messages")
    server.service.omni.behaviour.capacity = 0
    response = await http.post(CHAT, json=asking(stream=True))
    assert response.status_code == 429
    assert to_error(response)["code"] == Overloaded.code
    await eventually(lambda: server.service.omni.counts.open == 0)
