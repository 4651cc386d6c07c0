"""Conversations with models whose chat templates are strict: those of Gemma 2, which refuses
instructions, and of Mistral 7B Instruct v0.2, word for word but for blanks and quotation marks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import jinja2
import pytest
from fake_chat import FakeChatModel
from fake_service import FakeService, eventually
from live_server import Server, running

from cantata.api.realtime.message_layouts import OPENING
from cantata.api.settings import ServerSettings
from cantata.contract.chat_service import Answer
from cantata.contract.data.chat import ChatRequest, Message, Modality, TextPart
from cantata.contract.data.errors import InvalidRequest
from cantata.speech_input.settings import RealtimeSettings
from talking import Event, Talker, talker

GEMMA_2 = """
{%- if messages[0]['role'] == 'system' %}
{{- raise_exception('System role not supported') }}
{%- endif %}
{%- for message in messages %}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
{%- endif %}
{%- set role = 'model' if message['role'] == 'assistant' else message['role'] %}
{{- '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}
{%- endfor %}
{{- '<start_of_turn>model\n' }}"""
MISTRAL = """
{%- set told = messages[0]['content'] if messages[0]['role'] == 'system' else none %}
{%- for message in messages[(1 if told else 0):] %}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('conversation roles must alternate user and assistant roles') }}
{%- endif %}
{%- if message['role'] == 'user' %}
{{- '[INST] ' + (told + '\n\n' if told and loop.first else '') + message['content'] + ' [/INST]' }}
{%- else %}
{{- message['content'] + '</s>' }}
{%- endif %}
{%- endfor %}"""
ANSWERED = "Well, well."
REFUSED = "roles must alternate"


class StrictChatModel(FakeChatModel):
    """Answers what its template takes."""

    def __init__(self, template: str) -> None:
        super().__init__("writer", frozenset({Modality.TEXT}), (), 0)
        self.behaviour.text = ANSWERED
        self.prompts: list[str] = []
        self.refused = 0
        environment = jinja2.Environment()
        environment.globals["raise_exception"] = self._raise
        self._template = environment.from_string(template)

    @asynccontextmanager
    async def run(self, request: ChatRequest) -> AsyncIterator[Answer]:
        prompt = self._template.render(messages=[as_dict(one) for one in request.messages])
        self.prompts.append(prompt)
        async with super().run(request) as answer:
            yield answer

    def _raise(self, message: str) -> NoReturn:
        self.refused += 1
        raise InvalidRequest(f"messages: the template refuses them: {message}", "messages")


def as_dict(message: Message) -> dict[str, Any]:
    text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
    return {"role": message.role.value, "content": text}


@asynccontextmanager
async def talking_with(template: str, limits: RealtimeSettings) -> AsyncIterator[Any]:
    writer, service = StrictChatModel(template), FakeService()
    service.chat_models = {"writer": writer}
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        yield writer, server


@pytest.fixture
async def gemma(limits: RealtimeSettings) -> AsyncIterator[tuple[StrictChatModel, Server]]:
    async with talking_with(GEMMA_2, limits) as both:
        yield both


@pytest.fixture
async def mistral(limits: RealtimeSettings) -> AsyncIterator[tuple[StrictChatModel, Server]]:
    async with talking_with(MISTRAL, limits) as both:
        yield both


async def respond(c: Talker, **response: Any) -> Event:
    await c.send("response.create", response=response)
    return dict((await c.until("response.done"))["response"])


async def answer(c: Talker, **response: Any) -> None:
    assert (await respond(c, **response))["status"] == "completed"


async def test_instructions_begin_the_first_message(gemma: tuple[StrictChatModel, Server]) -> None:
    writer, server = gemma
    async with talker(server.url) as c:
        await c.update(instructions="Be brief.")
        await c.write("Hello.")
        await answer(c)
        refused = writer.refused
        await c.write("And now?")
        await answer(c)
    assert writer.prompts == [
        "<start_of_turn>user\nBe brief.\n\nHello.<end_of_turn>\n<start_of_turn>model\n",
        "<start_of_turn>user\nBe brief.\n\nHello.<end_of_turn>\n"
        f"<start_of_turn>model\n{ANSWERED}<end_of_turn>\n"
        "<start_of_turn>user\nAnd now?<end_of_turn>\n<start_of_turn>model\n",
    ]
    assert writer.refused == refused == 2, "what the template takes is found once"


async def test_who_speaks_twice_is_answered(mistral: tuple[StrictChatModel, Server]) -> None:
    writer, server = mistral
    async with talker(server.url) as c:
        await c.update(instructions="Be brief.")
        await c.write("Hello.")
        await c.write("Are you there?")
        await answer(c)
        item = {"type": "message", "role": "system"}
        content = [{"type": "input_text", "text": "It is Monday."}]
        await c.send("conversation.item.create", item={**item, "content": content})
        await c.until("conversation.item.done")
        await c.write("And now?")
        await answer(c)
    assert writer.prompts[0] == "[INST] Be brief.\n\nHello.\nAre you there? [/INST]"
    assert writer.prompts[1] == (
        "[INST] Be brief.\n\nIt is Monday.\n\nHello.\nAre you there? [/INST]"
        f"{ANSWERED}</s>[INST] And now? [/INST]"
    )


async def test_an_assistant_that_greets_first(mistral: tuple[StrictChatModel, Server]) -> None:
    writer, server = mistral
    async with talker(server.url) as c:
        await answer(c, instructions="Greet the caller.")
        await c.write("Hello.")
        await answer(c)
    assert writer.prompts == [
        f"[INST] Greet the caller.\n\n{OPENING} [/INST]",
        f"[INST] {OPENING} [/INST]{ANSWERED}</s>[INST] Hello. [/INST]",
    ]


async def test_what_no_layout_mends_is_told(mistral: tuple[StrictChatModel, Server]) -> None:
    """A result whose call is gone has no place in this template."""
    writer, server = mistral
    async with talker(server.url) as c:
        await c.write("Ring.")
        call = {"type": "function_call", "call_id": "c", "name": "ring", "arguments": "{}"}
        await c.send("conversation.item.create", item={"id": "called", **call})
        await c.until("conversation.item.done")
        response = await respond(c)
        assert response["status"] == "failed"
        assert REFUSED in response["status_details"]["error"]["message"]
        await c.send("conversation.item.delete", item_id="called")
        await c.until("conversation.item.deleted")
        await answer(c)
    assert writer.prompts == ["[INST] Ring. [/INST]"]
