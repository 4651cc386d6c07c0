"""A spoken question that needs a function of the client: each client runs it, and the answer that
is heard says what it returned."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agents
import openai
import pytest
from agents.realtime import RealtimeAgent, RealtimeRunner
from livekit.agents import Agent, AgentSession, function_tool, utils
from livekit.plugins import openai as livekit_openai
from openai.types.realtime.realtime_audio_input_turn_detection import ServerVad
from pipecat.frames.frames import LLMRunFrame, TTSStoppedFrame
from pipecat.services.llm_service import FunctionCallParams

from cantata_bench.server import free_port, running_server

from .conftest import LOG, PYTHON, Address
from .conversing import SERVER_VAD, Answer, spoken
from .listening import KEY
from .test_agents_realtime import collect_answer
from .test_agents_realtime import say as say_to_agent
from .test_livekit_howto import Loudspeaker, Microphone, keep
from .test_node import node, run  # noqa: F401
from .test_openai_realtime import configure, say
from .test_pipecat_realtime import conversation
from .test_pipecat_realtime import say as say_to_pipeline
from .tls import serve_tls_proxy
from .weather import CITY, FUNCTION, GREETING, TOOL, WEATHER, assert_told, serve_weather_chat

pytestmark = pytest.mark.e2e

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def weather_server() -> Iterator[Address]:
    """A server whose answers come from a model that calls functions."""
    log = LOG.with_name("server-clients-tools.log")
    with serve_weather_chat() as chat:
        options = ("--chat-url", chat, "--chat-model", "weather")
        with running_server(log, python=PYTHON, options=options) as running:
            yield Address(running.url, free_port())


class Weather:
    """The function, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def get(self, city: str) -> str:
        self.asked.append(city)
        return WEATHER


@pytest.fixture
def weather() -> Iterator[Weather]:
    function = Weather()
    yield function
    assert function.asked == [CITY]


async def test_openai(weather_server: Address, weather: Weather) -> None:
    answer = Answer()
    async with (
        openai.AsyncOpenAI(base_url=f"{weather_server.http}/v1", api_key=KEY) as client,
        client.realtime.connect(model="gpt-realtime") as connection,
        asyncio.timeout(PATIENCE_S),
    ):
        await configure(connection, tools=[TOOL])
        await say(connection, spoken(weather_server))
        async for event in connection:
            assert event.type != "error", event
            if event.type == "response.output_audio.delta":
                answer.sound += base64.b64decode(event.delta)
            elif event.type == "response.output_audio_transcript.delta":
                answer.text += event.delta
            elif event.type == "response.done" and answer.sound:
                break
            elif event.type == "response.done":
                (call,) = event.response.output or ()
                assert call.type == "function_call"
                output = await weather.get(**json.loads(call.arguments or ""))
                item = {"type": "function_call_output", "call_id": call.call_id, "output": output}
                await connection.conversation.item.create(item=item)  # type: ignore[arg-type]
                await connection.response.create()
    assert_told(answer)


async def test_agents(weather_server: Address, weather: Weather) -> None:
    tool = agents.function_tool(weather.get, name_override=FUNCTION)
    agent = RealtimeAgent(name="Forecaster", instructions="Say the weather.", tools=[tool])
    session = await RealtimeRunner(agent).run(
        model_config={
            "url": f"{weather_server.websocket}/v1/realtime?model=gpt-realtime",
            "api_key": KEY,
            "initial_model_settings": {"turn_detection": SERVER_VAD},
        }
    )
    async with session:
        await say_to_agent(session, spoken(weather_server))
        assert_told(await collect_answer(session, "audio_end", Answer()))


async def test_livekit(weather_server: Address, weather: Weather) -> None:
    async with utils.http_context.open():
        turns = ServerVad(**SERVER_VAD, create_response=True, interrupt_response=True)
        model = livekit_openai.realtime.RealtimeModel(
            base_url=f"{weather_server.http}/v1", api_key=KEY, turn_detection=turns
        )
        session = AgentSession[None](llm=model)
        texts: asyncio.Queue[str] = asyncio.Queue()
        session.on("conversation_item_added", lambda event: keep(event.item, texts))
        session.input.audio = Microphone(spoken(weather_server))
        session.output.audio = loudspeaker = Loudspeaker()
        tool = function_tool(weather.get, name=FUNCTION, description=TOOL["description"])
        await session.start(Agent(instructions="Say the weather.", tools=[tool]))
        async with asyncio.timeout(PATIENCE_S):
            text = await texts.get()
        assert_told(Answer(loudspeaker.sound, text))
        await session.aclose()


async def test_pipecat(weather_server: Address, weather: Weather) -> None:
    async def call(params: FunctionCallParams) -> None:
        await params.result_callback(await weather.get(**params.arguments))

    async with conversation(weather_server, TOOL, call) as (worker, speaker):
        await worker.queue_frame(LLMRunFrame())
        assert (await speaker.until(TTSStoppedFrame)).text == GREETING
        await say_to_pipeline(worker, spoken(weather_server))
        assert_told(await speaker.until(TTSStoppedFrame))


@pytest.mark.parametrize("script", ["openai_tool.mjs", "agents_tool.mjs", "ai_sdk_tool.mjs"])
async def test_node_clients(
    node: Path,  # noqa: F811
    weather_server: Address,
    tmp_path: Path,
    script: str,
) -> None:
    question = tmp_path / "question.pcm"
    question.write_bytes(spoken(weather_server))
    told = json.dumps({**TOOL, "result": WEATHER})
    authority = tmp_path / "authority.pem"
    async with serve_tls_proxy(weather_server.http, authority) as url:
        trusted = {"NODE_EXTRA_CA_CERTS": str(authority)}
        printed: Any = await asyncio.to_thread(run, node, script, url, question, told, **trusted)
    assert printed["asked"] == [{"city": CITY}]
    assert_told(Answer(base64.b64decode(printed["sound"]), printed["text"]))
