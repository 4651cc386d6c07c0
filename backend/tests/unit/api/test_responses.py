"""POST /v1/responses through OpenAI's own client, unmodified."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import groupby
from typing import Any

import httpx
import openai
import pytest
from fake_chat import FakeChatModel
from fake_service import eventually
from live_server import Server
from test_chat_tools import CALLS

from cantata.api.responses import store
from cantata.api.responses.objects import ResponseObject
from cantata.contract.data.chat import Role, TextPart
from cantata.contract.data.errors import RequestFailed, ResponseNotFound

RESPONSES = "/v1/responses"
WEATHER: dict[str, Any] = {
    "type": "function",
    "name": "weather",
    "description": "Tomorrow's weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}


@pytest.fixture
async def client(server: Server) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key="unused", max_retries=0
    ) as made:
        yield made


@pytest.fixture
def omni(server: Server) -> FakeChatModel:
    return server.service.omni


def said(model: FakeChatModel) -> list[tuple[Role, list[str]]]:
    """What the model was asked last, by message."""
    return [
        (message.role, [part.text for part in message.parts if isinstance(part, TextPart)])
        for message in model.counts.requests[-1].messages
    ]


async def test_a_text_is_answered(client: openai.AsyncOpenAI, omni: FakeChatModel) -> None:
    response = await client.responses.create(
        model="omni", instructions="Be brief.", input="Hello there.", temperature=0.5
    )
    assert response.output_text == "Hello there."
    assert (response.status, response.model, response.object) == ("completed", "omni", "response")
    assert response.usage is not None
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    assert said(omni) == [(Role.SYSTEM, ["Be brief."]), (Role.USER, ["Hello there."])]
    assert omni.counts.requests[-1].temperature == 0.5


async def test_a_conversation_goes_on_without_its_instructions(
    client: openai.AsyncOpenAI, omni: FakeChatModel
) -> None:
    first = await client.responses.create(
        model="omni", instructions="Be brief.", input=[{"role": "user", "content": "One."}]
    )
    again = await client.responses.create(
        model="omni", input="Two.", previous_response_id=first.id, store=False
    )
    assert again.previous_response_id == first.id
    assert said(omni) == [
        (Role.USER, ["One."]),
        (Role.ASSISTANT, ["One."]),
        (Role.USER, ["Two."]),
    ]
    assert (await client.responses.retrieve(first.id)).output_text == "One."
    for gone in (again.id, "resp_0"):
        with pytest.raises(openai.NotFoundError, match="hour"):
            await client.responses.retrieve(gone)
    await client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError) as refused:
        await client.responses.create(input="x", model="omni", previous_response_id=first.id)
    assert refused.value.param == "previous_response_id"


async def test_events_build_the_response(client: openai.AsyncOpenAI, server: Server) -> None:
    reader = server.service.reader
    reader.behaviour.text, reader.behaviour.thought = "All good.", ("Let me ", "see.")
    kinds, numbers, text = [], [], ""
    async with client.responses.stream(
        model="reader", input="How are you?", reasoning={"effort": "low"}
    ) as stream:
        async for event in stream:
            kinds.append(event.type)
            numbers.append(event.sequence_number)
            if event.type == "response.output_text.delta":
                text += event.delta
        final = await stream.get_final_response()
    assert numbers == list(range(len(numbers)))
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    once = [kind.removeprefix("response.") for kind, _ in groupby(kinds)]
    assert once[2:-1] == [
        "output_item.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert text == final.output_text == "All good."
    assert (await client.responses.retrieve(final.id)).output_text == "All good."


async def test_a_call_and_its_result(client: openai.AsyncOpenAI, omni: FakeChatModel) -> None:
    omni.behaviour.text, omni.behaviour.calls = "", CALLS
    async with client.responses.stream(
        model="omni",
        input="And tomorrow?",
        tools=[WEATHER],  # type: ignore[list-item]
    ) as stream:
        events = [event async for event in stream]
        response = await stream.get_final_response()
    arguments = [
        event.arguments for event in events if event.type == "response.function_call_arguments.done"
    ]
    assert arguments == ['{"city": "Ulm"}', "{}"]
    first, second = response.output
    assert first.type == second.type == "function_call"
    assert (first.name, first.arguments) == ("weather", '{"city": "Ulm"}')
    omni.behaviour.text, omni.behaviour.calls = "Rain.", ()
    after = await client.responses.create(
        model="omni",
        previous_response_id=response.id,
        input=[
            {"type": "function_call_output", "call_id": call.call_id, "output": text}
            for call, text in ((first, "rain"), (second, "noon"))
            if call.type == "function_call"
        ],
    )
    assert after.output_text == "Rain."
    messages = omni.counts.requests[-1].messages
    roles = [message.role for message in messages]
    assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL]
    assert [call.name for call in messages[1].calls] == ["weather", "now"]


async def test_items_that_are_kept_may_be_referred_to(
    client: openai.AsyncOpenAI, http: httpx.AsyncClient, omni: FakeChatModel
) -> None:
    """Vercel's AI SDK sends a conversation so, all of it each time."""
    omni.behaviour.text, omni.behaviour.calls = "Let me see.", CALLS[:3]
    tools: Any = [WEATHER]
    first = await client.responses.create(model="omni", input="And tomorrow?", tools=tools)
    words, call = first.output
    assert call.type == "function_call"
    omni.behaviour.text, omni.behaviour.calls = "Rain.", ()
    told = [{"type": "input_text", "text": "ra"}, {"type": "input_text", "text": "in"}]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": told}
    asked = [{"role": "user", "content": "And tomorrow?"}]
    referred = [{"type": "item_reference", "id": words.id}, {"id": call.id}]
    again: Any = [*asked, *referred, output]
    assert (await client.responses.create(model="omni", input=again)).output_text == "Rain."
    messages = omni.counts.requests[-1].messages
    assert [message.role for message in messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert said(omni)[1:] == [(Role.ASSISTANT, ["Let me see."]), (Role.TOOL, ["rain"])]
    assert [call.name for call in messages[1].calls] == ["weather"]
    await client.responses.delete(first.id)
    gone = await http.post(RESPONSES, json={"model": "omni", "input": again})
    assert (gone.status_code, gone.json()["error"]["param"]) == (404, "input[1].id")


async def test_a_fault_after_the_first_events_is_told(
    client: openai.AsyncOpenAI, omni: FakeChatModel
) -> None:
    omni.behaviour.fail_after, omni.behaviour.error = 2, RequestFailed("the stage is full")
    events = [
        event
        async for event in await client.responses.create(
            model="omni", input="Hello there, you.", stream=True
        )
    ]
    last = events[-1]
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert "the stage is full" in last.response.error.message
    await eventually(lambda: omni.counts.open == 0)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": "nobody"}, "model"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format"),
        ({"tool_choice": {"type": "function", "name": "x"}}, "tool_choice.name"),
        ({"reasoning": {"effort": "high"}}, "reasoning.effort"),
        ({"background": True}, "background"),
        ({"input": []}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].id"),
        ({"top_logprobs": 2}, "include"),
        (
            {"input": [{"type": "function_call_output", "call_id": "x", "output": "y"}]},
            "input",
        ),
    ],
)
async def test_errors_name_this_apis_fields(
    http: httpx.AsyncClient, fields: dict[str, Any], param: str
) -> None:
    body = {"model": "omni", "input": "hi", **fields}
    answer = await http.post(RESPONSES, json=body)
    assert answer.status_code in (400, 404), answer.text
    error = answer.json()["error"]
    assert error["param"] == param, error
    assert "messages[" not in error["message"]


def test_what_is_kept_is_bounded_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_CHARACTERS", 8000)
    now = [0.0]
    responses = store.ResponseStore(lambda: now[0])
    for name in ("first", "second", "third"):
        responses.keep(make_response(name), [{"role": "user", "content": "x" * 2000}])
    assert responses.find("third").response.id == "third"
    with pytest.raises(ResponseNotFound):
        responses.find("first")
    responses.keep(make_response("huge"), [{"role": "user", "content": "x" * 9000}])
    with pytest.raises(ResponseNotFound):
        responses.find("huge")
    now[0] = store.KEPT_S + 1.0
    with pytest.raises(ResponseNotFound):
        responses.find("third")


def make_response(response_id: str) -> ResponseObject:
    return ResponseObject(
        id=response_id,
        created_at=0,
        status="completed",
        instructions=None,
        max_output_tokens=None,
        model="omni",
        output=[],
        parallel_tool_calls=True,
        previous_response_id=None,
        reasoning={},
        store=True,
        temperature=None,
        text={},
        tool_choice="auto",
        tools=[],
        top_p=None,
        metadata={},
    )
