"""Who may call, for how long, and how calls end."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection
from endpoints import Endpoints
from fake_service import FakeService, eventually
from live_server import Server, running

from calling import Caller, caller, offer
from cantata.api.access.api_keys import ApiKeys
from cantata.api.routes import realtime_calls
from cantata.api.settings import SecuritySettings, ServerSettings
from cantata.speech_input.settings import CallSettings, RealtimeSettings
from talking import assert_idle

KEY = "a-key-that-is-long-enough"
SDP = {"content-type": "application/sdp"}


async def post(url: str, sdp: str, path: str = "", **options: Any) -> httpx.Response:
    async with httpx.AsyncClient(timeout=30) as http:
        address = f"{url}/v1/realtime/calls{path}"
        return await http.post(address, content=sdp, headers=SDP | options.pop("headers", {}))


async def written_offer(kinds: tuple[str, ...] = ("audio",), direction: str = "sendrecv") -> str:
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    peer.createDataChannel("oai-events")
    for kind in kinds:
        peer.addTransceiver(kind, direction=direction)
    sdp = await offer(peer)
    await peer.close()
    return sdp


def open_calls(server: Server) -> int:
    return int(server.app.state.context.calls.count)


async def closing(c: Caller) -> str:
    """The code of the last error before the server hung up."""
    with suppress(ConnectionError):
        while True:
            await c.event()
    return str(c.events[-1]["error"]["code"])


async def test_offers_that_cannot_be_answered_are_refused(server: Server) -> None:
    sdp = await written_offer()
    refused = [
        ("", "no SDP offer"),
        ("v=0\r\n", "offers nothing"),
        ("v=0\r\n" + "a=x\r\n" * 20_000, "at most 65536"),
        (await written_offer(("audio", "audio")), "audio, audio"),
        (await written_offer(("audio", "video")), "video"),
        (await written_offer(direction="sendonly"), "sendonly"),
        (sdp.replace("a=ice-ufrag", "a=no-ufrag"), "cannot be answered"),
        (sdp.replace("a=setup", "a=no-setup"), "audio needs a=setup"),
        ("a=no-setup".join(sdp.rsplit("a=setup", 1)), "application needs a=setup"),
        (re.sub("a=fingerprint:sha-...", "a=fingerprint:md5", sdp), "needs a=fingerprint"),
        (re.sub("opus|PCMU|PCMA|G722", "other", sdp), "cannot be answered"),
    ]
    for text, reason in refused:
        answer = await post(server.url, text)
        assert answer.status_code in (400, 413), (reason, answer.text)
        assert reason in answer.json()["error"]["message"]
    assert (await post(server.url, sdp, "?model=nobody")).status_code == 404
    async with httpx.AsyncClient(timeout=30) as http:
        address = f"{server.url}/v1/realtime/calls"
        assert "application/sdp" in (await http.post(address, json={})).text
        answer = await http.post(
            address, content=b"v=0\xff", headers={"content-type": "application/sdp"}
        )
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "sdp")
        binary: dict[str, Any] = {"sdp": (None, sdp), "session": ("session.json", b"\xff")}
        answer = await http.post(address, files=binary)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "session")
        form = {"sdp": (None, sdp), "session": (None, '{"audio": {"output": {"speed": 9}}}')}
        answer = await http.post(address, files=form)
        assert answer.json()["error"]["param"] == "session.audio.output.speed"
    assert open_calls(server) == 0


async def test_without_the_package_it_is_named(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(realtime_calls, "find_spec", lambda name: None)
    answer = await post(server.url, "v=0")
    assert answer.status_code == 501
    assert "cantata[webrtc]" in answer.json()["error"]["message"]


async def test_a_call_is_hung_up_by_either_side(server: Server) -> None:
    async with caller(server.url) as c:
        path = c.location.removeprefix("/v1/realtime/calls")
        assert (await post(server.url, "", f"{path}/hangup")).status_code == 200
        with pytest.raises(ConnectionError):
            await c.event()
        await eventually(lambda: open_calls(server) == 0)
        assert (await post(server.url, "", f"{path}/hangup")).status_code == 404
    async with caller(server.url) as c:
        c.channel.close()
        await eventually(lambda: open_calls(server) == 0)
    await assert_idle(server.url)


async def test_a_client_that_vanishes_in_an_answer_is_noticed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioice.ice.CONSENT_INTERVAL", 0.2)
    monkeypatch.setattr("aioice.ice.CONSENT_FAILURES", 2)
    server.solo.behaviour.chunks, server.solo.behaviour.interval_s = 5_000, 0.02
    async with caller(server.url) as c:
        await c.send("response.create")
        await c.until("output_audio_buffer.started")
        await c.vanish()
        await eventually(lambda: open_calls(server) == 0)
    assert server.solo.counts.aborted == 1
    await assert_idle(server.url)


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (RealtimeSettings(max_session_s=1.0), "session_expired"),
        (RealtimeSettings(idle_timeout_s=0.01), "idle_timeout"),
    ],
)
async def test_a_call_does_not_last_for_ever(limits: RealtimeSettings, code: str) -> None:
    service = FakeService()
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        async with caller(server.url) as c:
            assert await closing(c) == code
        await eventually(lambda: open_calls(server) == 0)


async def test_keys_limits_ports_and_clients_that_never_come() -> None:
    service = FakeService()
    calls = CallSettings(ports=(49_500, 49_599), address="192.0.2.77", max_calls=2, connect_s=1.0)
    security = SecuritySettings(ApiKeys([KEY, f"other-{KEY}"]), max_concurrent_per_key=1)
    settings = ServerSettings(security=security, realtime=RealtimeSettings(calls=calls))
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        sdp = await written_offer()
        assert (await post(server.url, sdp)).status_code == 401
        mine, others = ({"authorization": f"Bearer {key}"} for key in (KEY, f"other-{KEY}"))
        first = await post(server.url, sdp, headers=mine)
        assert first.status_code == 201
        candidates = [line.split() for line in first.text.splitlines() if "a=candidate" in line]
        assert {49_500 <= int(one[5]) <= 49_599 for one in candidates} == {True}
        assert {"127.0.0.1", "192.0.2.77"} <= {one[4] for one in candidates}
        second = await post(server.url, sdp, headers=mine)
        assert "its limit" in second.json()["error"]["message"]
        assert (await post(server.url, sdp, headers=others)).status_code == 201
        third = await post(server.url, sdp, headers=others)
        assert third.status_code == 429
        await eventually(lambda: open_calls(server) == 0)
        again = await post(server.url, sdp, headers=mine)
        assert again.status_code == 201, "its place is free again"


async def test_a_stopping_server_plays_the_answer_to_its_end(others: Endpoints) -> None:
    service = FakeService()
    service.solo.behaviour.chunks = 50
    limits = replace(RealtimeSettings(), chat=others.chat)
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        async with caller(server.url) as quiet, caller(server.url) as c:
            await c.send("response.create")
            await c.until("output_audio_buffer.started")
            server.stop()
            assert await closing(quiet) == "going_away"
            await c.until("output_audio_buffer.stopped")
            assert await closing(c) == "going_away"


async def test_a_server_that_is_cut_off_leaves_no_call(others: Endpoints) -> None:
    service = FakeService()
    async with running(service, ServerSettings()) as server:
        await eventually(lambda: service.ready)
        async with caller(server.url) as c:
            await server.app.state.context.calls.close()
            assert open_calls(server) == 0
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(c.event(), 30)
