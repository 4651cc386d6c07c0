"""POST /v1/chat/completions with tools: what the model is told, and its calls."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest
from fake_chat import FakeChatModel
from live_server import Server
from test_chat import CHAT, answered, asking
from test_chat_stream import deltas, streamed

from cantata.contract.data.chat import CallArguments, CallStarted, Message, Role, TextPart, ToolCall

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Wetter für morgen",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
CALLS = (
    CallStarted("weather"),
    CallArguments('{"city": '),
    CallArguments('"Ulm"}'),
    CallStarted("now"),
    CallArguments("{}"),
)


@pytest.fixture
def omni(server: Server) -> FakeChatModel:
    server.service.omni.behaviour.calls = CALLS
    return server.service.omni


async def test_a_call_and_its_result(http: httpx.AsyncClient, omni: FakeChatModel) -> None:
    omni.behaviour.text = ""
    answer = await answered(http, asking("And tomorrow?", tools=[WEATHER]))
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    message = choice["message"]
    assert message["content"] is None
    first, second = message["tool_calls"]
    assert first["type"] == second["type"] == "function"
    assert first["id"] != second["id"]
    assert first["function"] == {"name": "weather", "arguments": '{"city": "Ulm"}'}
    assert second["function"] == {"name": "now", "arguments": "{}"}
    (told,) = omni.counts.requests[0].tools
    assert json.loads(told) == WEATHER
    assert "für" in told

    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": text}
        for call, text in ((first, "rain"), (second, [{"type": "text", "text": "noon"}]))
    ]
    sent = [{"role": "user", "content": "And tomorrow?"}, message, *results]
    omni.behaviour.calls = ()
    omni.behaviour.text = "Rain."
    done = await answered(http, asking(tools=[WEATHER], messages=sent))
    assert done["choices"][0]["message"]["content"] == "Rain."
    assert "tool_calls" not in done["choices"][0]["message"]
    assert done["choices"][0]["finish_reason"] == "stop"
    assert omni.counts.requests[1].messages == (
        Message(Role.USER, (TextPart("And tomorrow?"),)),
        Message(
            Role.ASSISTANT, (), (ToolCall("weather", '{"city": "Ulm"}'), ToolCall("now", "{}"))
        ),
        Message(Role.TOOL, (TextPart("rain"),)),
        Message(Role.TOOL, (TextPart("noon"),)),
    )


async def test_streamed_words_and_calls(http: httpx.AsyncClient, omni: FakeChatModel) -> None:
    chunks = await streamed(http, asking("Hm.", tools=[WEATHER]))
    begin, words, *calls, end = deltas(chunks)
    assert (begin, words, end) == ({"role": "assistant", "content": ""}, {"content": "Hm."}, {})
    (started, *more), second = [c["tool_calls"] for c in calls[:3]], calls[3:]
    (first,) = started
    assert first.pop("id").startswith("call_")
    named = {"name": "weather", "arguments": ""}
    assert first == {"index": 0, "type": "function", "function": named}
    assert [one["function"] for (one,) in more] == [
        {"arguments": '{"city": '},
        {"arguments": '"Ulm"}'},
    ]
    assert [one["tool_calls"][0]["index"] for one in second] == [1, 1]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_with_tool_choice_none_the_model_is_not_told(
    http: httpx.AsyncClient, omni: FakeChatModel
) -> None:
    answer = await answered(http, asking("Hm.", tools=[WEATHER], tool_choice="none"))
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert omni.counts.requests[0].tools == ()


async def test_an_answer_that_is_cut_in_a_call_says_so(
    http: httpx.AsyncClient, omni: FakeChatModel
) -> None:
    answer = await answered(http, asking("abcdef", tools=[WEATHER], max_tokens=1))
    assert answer["choices"][0]["finish_reason"] == "length"
    assert len(answer["choices"][0]["message"]["tool_calls"]) == 2


async def test_a_result_without_a_call_is_refused(http: httpx.AsyncClient) -> None:
    called = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    sent = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "b", "content": "4"},
    ]
    response = await http.post(CHAT, json=asking(messages=sent))
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "messages[2].tool_call_id"


@pytest.fixture
async def client(server: Server) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as one:
        yield one


async def test_openais_client_puts_a_streamed_call_together(
    client: openai.AsyncOpenAI, omni: FakeChatModel
) -> None:
    async with client.chat.completions.stream(
        model="omni",
        messages=[{"role": "user", "content": "Hm."}],
        tools=[WEATHER],  # type: ignore[list-item]
    ) as stream:
        message = (await stream.get_final_completion()).choices[0].message
    assert message.content == "Hm."
    assert [(c.function.name, c.function.arguments) for c in message.tool_calls or ()] == [
        ("weather", '{"city": "Ulm"}'),
        ("now", "{}"),
    ]
