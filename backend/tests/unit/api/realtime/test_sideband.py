"""A call's sideband: a program sees the caller's session and takes part in it."""

from __future__ import annotations

from typing import Any

import httpx
import openai
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection
from endpoints import Endpoints
from fake_service import eventually
from live_server import Server
from websockets.exceptions import ConnectionClosed, InvalidStatus

from calling import caller, offer
from cantata.api.realtime.calls.sideband import MAX_SIDEBANDS
from cantata.api.realtime.server_events import BufferEvent
from talking import Talker, assert_idle, talker

TOOL = {
    "type": "function",
    "name": "weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def attend(location: str) -> str:
    """The query of a call's sideband."""
    return f"?call_id={location.rsplit('/', 1)[1]}"


async def find_close_code(program: Talker) -> int | None:
    """The code with which the server closes, after all its events."""
    try:
        while True:
            await program.event()
    except ConnectionClosed as closed:
        return None if closed.rcvd is None else closed.rcvd.code


async def test_both_see_the_conversation_and_may_change_the_session(
    server: Server, others: Endpoints
) -> None:
    async with caller(server.url) as call, talker(server.url, attend(call.location)) as program:
        (created,) = program.events
        assert created["session"]["id"] == call.events[0]["session"]["id"]
        await program.update(instructions="Be kind.", tools=[TOOL])
        seen = await call.until("session.updated")
        assert seen["session"]["instructions"] == "Be kind."
        await call.write("Hello.")
        await program.until("conversation.item.done")
        await program.send("response.create")
        for one in (call, program):
            said = await one.until("response.output_audio_transcript.done")
            assert said["transcript"] == "The answer."
            await one.until("response.done")
        await call.until("output_audio_buffer.stopped")
        await program.until("output_audio_buffer.stopped")
        assert "response.output_audio.delta" not in program.types()
        assert others.asked[0]["tools"][0]["function"]["name"] == "weather"
    await assert_idle(server.url)


async def test_a_program_answers_a_callers_function_calls_by_openais_sdk(
    server: Server, others: Endpoints
) -> None:
    others.answer_by_call()
    tool: Any = {"type": "function", "name": "tell_time"}
    async with (
        caller(server.url) as call,
        openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client,
        client.realtime.connect(call_id=call.location.rsplit("/", 1)[1]) as sideband,
    ):
        await sideband.session.update(session={"type": "realtime", "tools": [tool]})
        await call.until("session.updated")
        await call.write("What time is it?")
        await call.send("response.create")
        async for event in sideband:
            if event.type == "response.function_call_arguments.done":
                assert event.arguments == '{"zone": "UTC"}'
            if event.type == "response.done":
                break
        others.answer_in_words("It is noon.")
        await sideband.conversation.item.create(
            item={"type": "function_call_output", "call_id": "call_1", "output": "noon"}
        )
        await sideband.response.create()
        said = await call.until("response.output_audio_transcript.done")
        assert said["transcript"] == "It is noon."
    assert others.asked[-1]["messages"][-1]["content"] == "noon"


async def test_one_that_does_not_read_leaves_the_call_alone(server: Server) -> None:
    async with caller(server.url) as call, talker(server.url, attend(call.location)) as program:
        (open_call,) = server.app.state.context.calls._calls.values()
        (sideband,) = open_call.sidebands
        sideband.notify([BufferEvent()] * 1000)  # at once: nothing of it can be sent meanwhile
        assert open_call.sidebands == set()
        await call.write("Still here?")
        with pytest.raises(ConnectionClosed):
            await program.until("conversation.item.done")


async def test_the_call_outlives_it_and_ends_it(server: Server) -> None:
    async with caller(server.url) as call:
        async with talker(server.url, attend(call.location)):
            pass
        (open_call,) = server.app.state.context.calls._calls.values()
        await eventually(lambda: not open_call.sidebands)
        async with talker(server.url, attend(call.location)) as program:
            await call.write("Still here?")
            await program.until("conversation.item.done")
            call.channel.close()
            assert await find_close_code(program) == 1000
    await assert_idle(server.url)


async def test_refusals_go_to_whom_they_concern(server: Server) -> None:
    async with caller(server.url) as call, talker(server.url, attend(call.location)) as program:
        await program.send("input_audio_buffer.append", audio="AAAA")
        assert "audio track" in (await program.error())["message"]
        await program.send("session.update", session={"type": "realtime", "instructions": 5})
        assert (await program.error())["param"] == "session.instructions"
        await program.update(instructions="Be kind.")
        await call.until("session.updated")
        assert "error" not in call.types()


async def test_the_session_can_be_set_before_the_caller_connects(server: Server) -> None:
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    peer.createDataChannel("oai-events")
    peer.addTransceiver("audio")
    try:
        async with httpx.AsyncClient(timeout=30) as http:
            sent = {"content-type": "application/sdp"}
            address = f"{server.url}/v1/realtime/calls"
            answer = await http.post(address, content=await offer(peer), headers=sent)
            location = answer.headers["location"]
            async with talker(server.url, attend(location)) as program:
                changed = await program.update(instructions="Be kind.")
                assert changed["instructions"] == "Be kind."
                await program.send("response.create")
                assert "not connected" in (await program.error())["message"]
            await http.post(f"{server.url}{location}/hangup")
    finally:
        await peer.close()


async def test_only_open_calls_have_one_and_not_too_many(server: Server) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with talker(server.url, "?call_id=rtc_1"):
            pass
    assert refused.value.response.status_code == 404
    async with caller(server.url) as call:
        (open_call,) = server.app.state.context.calls._calls.values()
        query = attend(call.location)
        programs = [talker(server.url, query) for _ in range(MAX_SIDEBANDS)]
        for one in programs:
            await one.__aenter__()
        with pytest.raises(InvalidStatus) as refused:
            async with talker(server.url, query):
                pass
        assert refused.value.response.status_code == 429
        for one in programs:
            await one.__aexit__(None, None, None)
        await eventually(lambda: not open_call.sidebands)
