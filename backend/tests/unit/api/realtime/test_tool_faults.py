"""Tools that fail: the session goes on, and whatever answers gets messages that it can read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from endpoints import Endpoints
from fake_chat import FakeChatModel
from fake_service import FakeService, eventually
from live_server import Server, running

from cantata.api.chat.tools import MAX_TOOLS
from cantata.api.settings import ServerSettings
from cantata.contract.data.chat import AnswerOption, Modality, Role, TextPart, ToolCall
from cantata.contract.data.errors import ContextFull, InvalidRequest, StageDied
from cantata.speech_input.chat import UNANSWERED
from cantata.speech_input.settings import RealtimeSettings
from talking import Event, Talker, talker

TOOL = {"type": "function", "name": "tell_time", "parameters": {"type": "object"}}


async def respond(c: Talker, **response: Any) -> Event:
    await c.send("response.create", response=response)
    return dict((await c.until("response.done"))["response"])


async def send_output(c: Talker, call_id: str, output: str) -> None:
    item = {"type": "function_call_output", "call_id": call_id, "output": output}
    await c.send("conversation.item.create", item=item)
    await c.until("conversation.item.done")


async def call(c: Talker, others: Endpoints, *ids: str) -> None:
    """An answer that makes these calls."""
    function = {"name": "tell_time", "arguments": "{}"}
    others.deltas, others.finish = [], "tool_calls"
    others.calls = [
        {"index": index, "id": one, "type": "function", "function": function}
        for index, one in enumerate(ids)
    ]
    response = await respond(c)
    assert [item["call_id"] for item in response["output"]] == list(ids)


def told(others: Endpoints) -> list[tuple[str, str]]:
    """Of the last request: each message's role, with its text or the ids of its calls."""

    def show(message: dict[str, Any]) -> str:
        ids = [one["id"] for one in message.get("tool_calls", ())]
        result = f"{message['tool_call_id']}: " if message["role"] == "tool" else ""
        return ",".join(ids) or result + message["content"]

    return [(one["role"], show(one)) for one in others.asked[-1]["messages"]]


async def test_a_tool_that_never_answers_holds_up_nothing(
    server: Server, others: Endpoints
) -> None:
    async with talker(server.url) as c:
        await c.update(tools=[TOOL])
        await c.write("What time is it?")
        await call(c, others, "call_1")
        others.answer_in_words("I do not know.")
        await c.write("Never mind.")
        response = await respond(c)
        assert response["status"] == "completed"
        assert told(others) == [
            ("user", "What time is it?"),
            ("assistant", "call_1"),
            ("tool", f"call_1: {UNANSWERED}"),
            ("user", "Never mind."),
        ]
        # Late is better than never.
        await send_output(c, "call_1", "noon")
        await respond(c)
    assert told(others) == [
        ("user", "What time is it?"),
        ("assistant", "call_1"),
        ("tool", "call_1: noon"),
        ("user", "Never mind."),
        ("assistant", "I do not know."),
    ]


async def test_one_of_several_that_does_not_answer(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        await c.update(tools=[TOOL])
        await c.write("What time is it here and there?")
        await call(c, others, "call_1", "call_2")
        await send_output(c, "call_2", "noon")
        await call(c, others, "call_3")
        await send_output(c, "call_3", "night")
        others.answer_in_words("Noon.")
        await respond(c)
    assert told(others) == [
        ("user", "What time is it here and there?"),
        ("assistant", "call_1,call_2"),
        ("tool", f"call_1: {UNANSWERED}"),
        ("tool", "call_2: noon"),
        ("assistant", "call_3"),
        ("tool", "call_3: night"),
    ]


@pytest.mark.parametrize("arguments", ["{at: noon", "", "[]", "null", "\u0000"])
async def test_arguments_that_are_no_json_reach_the_client_as_written(
    server: Server, others: Endpoints, arguments: str
) -> None:
    others.deltas, others.finish = [], "tool_calls"
    function = {"name": "tell_time", "arguments": arguments}
    others.calls = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
    async with talker(server.url) as c:
        await c.update(tools=[TOOL])
        await c.write("What time is it?")
        response = await respond(c)
        assert response["status"] == "completed"
        assert response["output"][0]["arguments"] == arguments
        await send_output(c, "call_1", "these arguments are no JSON")
        others.answer_in_words("Let me see.")
        assert (await respond(c))["status"] == "completed"
    made = others.asked[-1]["messages"][1]["tool_calls"][0]["function"]
    assert made["arguments"] == arguments


def named(count: int) -> list[dict[str, Any]]:
    return [{**TOOL, "name": f"tool_{number}"} for number in range(count)]


@pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "name": "tool_99"}])
async def test_a_hundred_tools(server: Server, others: Endpoints, choice: Any) -> None:
    async with talker(server.url) as c:
        session = await c.update(tools=named(100), tool_choice=choice)
        assert len(session["tools"]) == 100
        await c.write("Which?")
        await call(c, others, "call_1")
    assert [one["function"]["name"] for one in others.asked[0]["tools"]] == [
        f"tool_{number}" for number in range(100)
    ]


async def test_more_than_may_be_are_refused_and_change_nothing(server: Server) -> None:
    async with talker(server.url) as c:
        await c.update(tools=named(MAX_TOOLS))
        sent = {"type": "realtime", "tools": named(MAX_TOOLS + 1)}
        await c.send("session.update", session=sent)
        error = await c.error()
        assert error["param"] == "session.tools"
        assert str(MAX_TOOLS) in error["message"]
        assert len((await c.update(instructions="Be kind."))["tools"]) == MAX_TOOLS


@pytest.fixture
def writer() -> FakeChatModel:
    writer = FakeChatModel("writer", frozenset({Modality.TEXT}), (), 0)
    writer.behaviour.text = "The answer."
    writer.calls_tools, writer.options = True, frozenset({AnswerOption.TOOL_CHOICE})
    return writer


@pytest.fixture
async def served(writer: FakeChatModel, limits: RealtimeSettings) -> AsyncIterator[Server]:
    """A server whose own model writes the answers."""
    service = FakeService()
    service.chat_models = {**service.chat_models, "writer": writer}
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        yield server


TEMPLATE = "messages: this model's chat template refuses them: roles must alternate"
GRAMMAR = "tools: it takes more than 5 s or 1024 MiB to compile; send a simpler schema"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidRequest(TEMPLATE, "messages"), "invalid_value"),
        (InvalidRequest(GRAMMAR, "tools"), "invalid_value"),
        (ContextFull("the conversation has 9000 tokens"), "context_length_exceeded"),
        (StageDied("the thinker has died"), "stage_died"),
    ],
)
@pytest.mark.parametrize("fail_after", [0, 2])
async def test_an_answer_that_fails_leaves_the_session_as_it_was(
    served: Server, writer: FakeChatModel, error: Exception, code: str, fail_after: int
) -> None:
    writer.behaviour.error, writer.behaviour.fail_after = error, fail_after
    async with talker(served.url) as c:
        await c.update(tools=[TOOL], tool_choice="required")
        await c.write("Hello.")
        response = await respond(c)
        assert response["status"] == "failed"
        failure = response["status_details"]["error"]
        assert (failure["code"], failure["message"]) == (code, str(error))
        writer.behaviour.error = writer.behaviour.fail_after = None
        assert (await respond(c))["status"] == "completed"
        assert c.sound()


async def test_of_a_call_that_is_left_out_the_result_goes_too(
    served: Server, writer: FakeChatModel
) -> None:
    """A conversation that is too long loses its beginning; a result without its call is refused by
    templates."""
    writer.behaviour.max_messages = 4
    async with talker(served.url) as c:
        await c.write("What time is it?")
        for number in range(2):
            fields = {"call_id": f"call_{number}", "name": "tell_time", "arguments": "{}"}
            item = {"type": "function_call", **fields}
            await c.send("conversation.item.create", item=item)
            await send_output(c, f"call_{number}", "noon")
        await c.write("And now?")
        assert (await respond(c))["status"] == "completed"
    messages = writer.counts.requests[-1].messages
    assert [one.role for one in messages] == [Role.ASSISTANT, Role.TOOL, Role.USER]
    assert messages[0].calls == (ToolCall("tell_time", "{}"),)
    assert messages[1].parts == (TextPart("noon"),)
    assert json.loads(messages[0].calls[0].arguments) == {}
