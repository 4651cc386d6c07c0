"""Faults of a real thinker in a spoken conversation: typed errors, and the session goes on."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from cantata.api.app import create_app
from cantata.api.server.listening import get_url, listen
from cantata.api.server.serve import make_server
from cantata.api.settings import ServerSettings
from cantata.pipeline.chat_model import PipelineChatModel
from cantata.pipeline.plan import plan_service, preload_stages
from cantata.pipeline.service import create_service
from cantata.speech_input.settings import Endpoint, RealtimeSettings
from cantata_models.text_model.plugin import THINKER
from cantata_models.text_model.random_checkpoint import write_checkpoint
from cantata_models.text_model.tests.serving import VOICE, small
from talking import Event, Talker, talker

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

START_S = 240.0
RECOVERY_S = 120.0
MODEL = "?model=text-model"
ANSWERS = 10
NOBODY = Endpoint("http://127.0.0.1:9/v1", "none")
"""Would transcribe: these tests only write."""


@dataclass(frozen=True)
class Thinking:
    """A server of a tiny Llama and the embedded voice."""

    url: str
    model: PipelineChatModel

    @property
    def pid(self) -> int:
        """The thinker's."""
        stage: Any = self.model.orchestrator.stages[THINKER]
        assert stage.pid is not None
        return int(stage.pid)

    async def recovered(self) -> None:
        await self.model.orchestrator.wait_until_ready(RECOVERY_S)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def thinking(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Thinking]:
    folder = write_checkpoint(tmp_path_factory.mktemp("text"), "llama")
    plans = [plan_service(VOICE), small(folder)]
    preload_stages(plans)
    service = create_service(*plans)
    app = create_app(service, ServerSettings(realtime=RealtimeSettings(transcription=NOBODY)))
    with listen("127.0.0.1", 0) as listener:
        server = make_server(app)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with asyncio.timeout(START_S):
            await app.state.context.lifecycle.settled.wait()
        yield Thinking(get_url(listener), service.chat_models["text-model"])
        server.stop()
        await serving


async def respond(c: Talker, **response: Any) -> Event:
    sent = {"max_output_tokens": 12, **response}
    await c.send("response.create", response=sent)
    return dict((await c.until("response.done"))["response"])


async def assert_answers(c: Talker) -> None:
    """It does, aloud: random weights may write nothing that can be spoken, but not for ever."""
    c.events.clear()
    for _ in range(ANSWERS):
        response = await respond(c, max_output_tokens=40)
        assert response["status"] in ("completed", "incomplete"), response
        if c.sound():
            return
        await c.write("And?")
    raise AssertionError("nothing was spoken")


def failure(response: Event) -> Event:
    assert response["status"] == "failed", response
    return dict(response["status_details"]["error"])


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hung"])
async def test_a_thinker_that_is_lost_in_mid_sentence(
    thinking: Thinking, fault: signal.Signals
) -> None:
    async with talker(thinking.url, MODEL) as c:
        await c.write("Tell me about the sea.")
        await c.send("response.create")
        await c.until("response.output_audio_transcript.delta")
        before = thinking.pid
        os.kill(before, fault)
        error = failure((await c.until("response.done"))["response"])
        assert error["code"] == "stage_died"
        assert error["type"] == "server_error"
        await thinking.recovered()
        assert thinking.pid != before
        # What was written of the answer is in the conversation, and so is what was asked.
        await c.write("Go on, please.")
        await assert_answers(c)


async def test_a_template_that_throws(thinking: Thinking) -> None:
    """This one refuses to answer itself."""
    async with talker(thinking.url, MODEL) as c:
        content = [{"type": "output_text", "text": "Hello."}]
        item = {"id": "mine", "type": "message", "role": "assistant", "content": content}
        await c.send("conversation.item.create", item=item)
        await c.until("conversation.item.done")
        error = failure(await respond(c))
        assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_value")
        assert "the last message is the assistant" in error["message"]
        await c.write("And now?")
        await assert_answers(c)


async def test_a_message_that_is_too_long_for_the_context(thinking: Thinking) -> None:
    async with talker(thinking.url, MODEL) as c:
        content = [{"type": "input_text", "text": "long " * 400}]
        item = {"id": "long", "type": "message", "role": "user", "content": content}
        await c.send("conversation.item.create", item=item)
        await c.until("conversation.item.done")
        error = failure(await respond(c))
        assert error["code"] == "context_length_exceeded"
        # It leaves the conversation as soon as that has anything else to answer.
        await c.write("And now?")
        await assert_answers(c)


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("choice", ["auto", "required"])
async def test_a_hundred_tools_for_a_small_context(thinking: Thinking, choice: str) -> None:
    tools = [{"type": "function", "name": f"tool_{number}"} for number in range(100)]
    async with talker(thinking.url, MODEL) as c:
        await c.update(tools=tools, tool_choice=choice)
        await c.write("Which one?")
        assert failure(await respond(c))["code"] == "context_length_exceeded"
        await c.update(tools=[], tool_choice="auto")
        await assert_answers(c)


async def test_arguments_that_are_no_json_and_a_tool_that_does_not_answer(
    thinking: Thinking,
) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "ring", "arguments": "{at: noon"}
    async with talker(thinking.url, MODEL) as c:
        await c.write("Ring.")
        await c.send("conversation.item.create", item=call)
        await c.until("conversation.item.done")
        await assert_answers(c)
