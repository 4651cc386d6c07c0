"""Functions of the client in conversations: offered, called, answered, and refused by name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from endpoints import Endpoints
from fake_chat import FakeChatModel
from fake_service import FakeService, eventually
from live_server import Server, running

from cantata.api.settings import ServerSettings
from cantata.contract.data.chat import (
    AnswerOption,
    CallArguments,
    CallStarted,
    Modality,
    Role,
    TextPart,
    ToolCall,
    ToolChoice,
)
from cantata.speech_input.settings import RealtimeSettings
from talking import Event, Talker, talker

TOOL = {
    "type": "function",
    "name": "tell_time",
    "description": "The time somewhere.",
    "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}},
}
FUNCTION = {key: value for key, value in TOOL.items() if key != "type"}
CALLED = [
    "response.created",
    "rate_limits.updated",
    "response.output_item.added",
    "conversation.item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
]


async def respond(c: Talker, **response: Any) -> Event:
    await c.send("response.create", response=response)
    return dict((await c.until("response.done"))["response"])


async def ask(c: Talker, others: Endpoints) -> Event:
    """A call is made; its item."""
    others.answer_by_call()
    await c.update(tools=[TOOL])
    await c.write("What time is it?")
    c.events.clear()
    response = await respond(c)
    (item,) = response["output"]
    return dict(item)


async def test_a_call_is_told_while_it_is_written(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        item = await ask(c, others)
        assert c.types() == CALLED
        assert item["type"] == "function_call"
        assert (item["name"], item["call_id"]) == ("tell_time", "call_1")
        assert json.loads(item["arguments"]) == {"zone": "UTC"}
        deltas = [e["delta"] for e in c.events if e["type"].endswith("arguments.delta")]
        assert deltas == ['{"zone": ', '"UTC"}']
        assert c.sound() == b""
    (asked,) = others.asked
    assert asked["tools"] == [{"type": "function", "function": FUNCTION}]
    assert asked["tool_choice"] == "auto"


async def test_the_answer_goes_on_from_the_output(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        await ask(c, others)
        output = {"type": "function_call_output", "call_id": "call_1", "output": "noon"}
        await c.send("conversation.item.create", item=output)
        shown = (await c.until("conversation.item.done"))["item"]
        assert {key: shown[key] for key in output} == output
        others.answer_in_words("It is noon.")
        response = await respond(c)
        assert response["output"][0]["content"][0]["transcript"] == "It is noon."
        assert c.sound()
    call = {"name": "tell_time", "arguments": '{"zone": "UTC"}'}
    assert others.asked[-1]["messages"][-2:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
        },
        {"role": "tool", "content": "noon", "tool_call_id": "call_1"},
    ]


async def test_words_before_calls_are_spoken_and_calls_may_be_several(
    server: Server, others: Endpoints
) -> None:
    others.answer_by_call()
    others.deltas = ["One moment."]
    second = {"name": "tell_time", "arguments": "{}"}
    others.calls.append({"index": 1, "id": "call_2", "type": "function", "function": second})
    async with talker(server.url) as c:
        await c.update(tools=[TOOL])
        await c.write("What time is it?")
        c.events.clear()
        output = (await respond(c))["output"]
        assert [item["type"] for item in output] == ["message", "function_call", "function_call"]
        assert output[0]["content"][0]["transcript"] == "One moment."
        assert c.sound()
        added = [e for e in c.events if e["type"] == "response.output_item.added"]
        assert [event["output_index"] for event in added] == [0, 1, 2]


@pytest.mark.parametrize(
    ("before", "output"),
    [
        (["One moment."], [("message", "One moment. Nearly there."), ("function_call", None)]),
        ([], [("function_call", None)]),
    ],
)
async def test_words_behind_a_call_go_on_with_those_before_it(
    server: Server, others: Endpoints, before: list[str], output: list[tuple[str, str | None]]
) -> None:
    others.answer_by_call()
    others.deltas, others.deltas_behind = before, [" Nearly there."]
    async with talker(server.url) as c:
        await c.update(tools=[TOOL])
        await c.write("What time is it?")
        c.events.clear()
        items = (await respond(c))["output"]
        said = [one["content"][0]["transcript"] if "content" in one else None for one in items]
        assert list(zip([one["type"] for one in items], said, strict=True)) == output
        assert "".join(e["delta"] for e in c.events if "transcript.delta" in e["type"]) == (
            output[0][1] or ""
        )
        assert bool(c.sound()) == bool(before)
        others.deltas_behind = []
        others.answer_in_words("It is noon.")
        result = {"type": "function_call_output", "call_id": "call_1", "output": "noon"}
        await c.send("conversation.item.create", item=result)
        await respond(c)
    kept = others.asked[-1]["messages"][-2:]
    assert [one["role"] for one in kept] == ["assistant", "tool"], "the call and its output"
    assert kept[0]["content"] == (output[0][1] or "")


async def test_a_single_answer_has_its_own_tools(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        await c.write("Hello.")
        await respond(c, tools=[TOOL], tool_choice={"type": "function", "name": "tell_time"})
        await respond(c)
        await c.update(tools=[TOOL], tool_choice="none")
        await respond(c)
    named = {"type": "function", "function": {"name": "tell_time"}}
    assert others.asked[0]["tool_choice"] == named
    assert all("tools" not in asked for asked in others.asked[1:])


@pytest.mark.parametrize(
    ("session", "param", "says"),
    [
        ({"tools": [{"type": "mcp", "server_label": "x"}]}, "session.tools", "mcp tools are not"),
        ({"tools": [{"type": "function"}]}, "session.tools.name", "required"),
        ({"tools": [TOOL], "tool_choice": "maybe"}, "session.tool_choice", "auto"),
    ],
)
async def test_what_is_not_served_is_refused_by_name(
    server: Server, session: dict[str, Any], param: str, says: str
) -> None:
    async with talker(server.url) as c:
        await c.send("session.update", session={"type": "realtime", **session})
        error = await c.error()
        assert error["param"] == param
        assert says in error["message"]


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ({"type": "function_call_output", "call_id": "call_9", "output": "x"}, "item.call_id"),
        ({"type": "function_call_output", "call_id": "call_9"}, "item.output"),
        ({"type": "function_call", "call_id": "call_9", "name": "f"}, "item.arguments"),
    ],
)
async def test_items_that_fit_nothing_are_refused(
    server: Server, item: dict[str, Any], param: str
) -> None:
    async with talker(server.url) as c:
        await c.send("conversation.item.create", item=item)
        assert (await c.error())["param"] == param


async def test_an_endpoint_is_told_of_a_single_call(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        await ask(c, others)
        await respond(c, tools=[TOOL], parallel_tool_calls=False)
    assert "parallel_tool_calls" not in others.asked[0]
    assert others.asked[1]["parallel_tool_calls"] is False


async def test_a_model_that_hears_calls_none(server: Server) -> None:
    async with talker(server.url, "?model=omni") as c:
        await c.send("session.update", session={"type": "realtime", "tools": [TOOL]})
        assert (await c.error())["param"] == "session.tools"


@pytest.fixture
async def served(limits: RealtimeSettings) -> AsyncIterator[tuple[str, FakeChatModel]]:
    """A server whose model writes calls; without it, rules answer."""
    service = FakeService()
    writer = FakeChatModel("writer", frozenset({Modality.TEXT}), (), 0)
    writer.behaviour.text = ""
    writer.behaviour.calls = (CallStarted("tell_time"), CallArguments('{"zone": "UTC"}'))
    writer.calls_tools, writer.options = True, frozenset()
    service.chat_models = {**service.chat_models, "writer": writer}
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        yield server.url, writer


async def test_a_served_model_calls_them(served: tuple[str, FakeChatModel]) -> None:
    url, writer = served
    async with talker(url) as c:
        await c.update(tools=[TOOL])
        await c.write("What time is it?")
        (item,) = (await respond(c))["output"]
        assert (item["name"], item["arguments"]) == ("tell_time", '{"zone": "UTC"}')
        output = {
            "type": "function_call_output",
            "call_id": item["call_id"],
            "output": "noon",
        }
        await c.send("conversation.item.create", item=output)
        await respond(c, tools=[])
        await c.send("session.update", session={"type": "realtime", "tool_choice": "required"})
        assert "valid: auto, none" in (await c.error())["message"]
        await c.send("session.update", session={"type": "realtime", "parallel_tool_calls": False})
        assert (await c.error())["param"] == "session.parallel_tool_calls"
        writer.options = frozenset({AnswerOption.TOOL_CHOICE})
        await respond(c, tools=[TOOL], parallel_tool_calls=False)
        await respond(c, tools=[TOOL], tool_choice="required")
        await respond(c, tools=[TOOL], tool_choice={"type": "function", "name": "tell_time"})
    chosen = [request.tool_choice for request in writer.counts.requests]
    assert chosen[-3:] == [
        ToolChoice(parallel=False),
        ToolChoice(required=True),
        ToolChoice(name="tell_time"),
    ]
    (tool,) = writer.counts.requests[0].tools
    assert json.loads(tool) == {"type": "function", "function": FUNCTION}
    call, result = writer.counts.requests[1].messages[-2:]
    assert (call.role, call.calls) == (Role.ASSISTANT, (ToolCall("tell_time", '{"zone": "UTC"}'),))
    assert (result.role, result.parts) == (Role.TOOL, (TextPart("noon"),))


async def test_rules_call_nothing(limits: RealtimeSettings) -> None:
    service = FakeService()
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        async with talker(server.url) as c:
            await c.send("session.update", session={"type": "realtime", "tools": [TOOL]})
            assert (await c.error())["param"] == "session.tools"
