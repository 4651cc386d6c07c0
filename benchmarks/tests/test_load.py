"""Loads on a real server over both transports: what is counted, and the effect of a rejection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import pytest
from fake_service import eventually
from live_server import Server

from cantata.contract.data.errors import RequestFailed
from cantata_bench.client import Target
from cantata_bench.load import ClientReport, _Load, _measure
from cantata_bench.results import ListenedRequest, LoadSpec
from cantata_bench.server import free_port

Transport = Literal["websocket", "http"]
TRANSPORTS: tuple[Transport, ...] = ("websocket", "http")


async def put_on(server: Server, **spec: object) -> ClientReport:
    fields = {"kind": "closed", "texts": "short", "warm_up_s": 0.0, "seconds": 0.5, **spec}
    return await _measure(LoadSpec.model_validate(fields), Target(server.url), None)


async def put_on_until(
    server: Server, done: Callable[[list[ListenedRequest]], bool], **spec: object
) -> list[ListenedRequest]:
    """A load that ends when it has what the test needs, however long the host takes."""
    fields = {"kind": "closed", "texts": "short", "warm_up_s": 0.0, "seconds": 600.0, **spec}
    load = _Load(LoadSpec.model_validate(fields), Target(server.url), None)
    running = asyncio.create_task(load.run())
    await eventually(lambda: done(load.tally.records))
    load.end()
    await running
    return load.tally.records


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_closed_loop_keeps_its_streams_busy(server: Server, transport: Transport) -> None:
    server.service.solo.behaviour.interval_s = 0.02
    report = await put_on(server, streams=3, transport=transport, seconds=1.5)
    assert server.service.solo.counts.max_open == 3
    assert len(report.records) > 3
    assert {record.outcome for record in report.records} == {"spoken"}
    for record in report.records:
        assert record.header_s <= record.ttfp_s <= record.e2e_s
        assert record.audio_s == pytest.approx(0.02 * record.characters)
        assert {"text", "admit", "talker", "deliver"} <= record.timeline.keys()
        assert max(record.timeline.values()) <= record.ttfp_s
    assert report.audio_s == pytest.approx(sum(r.audio_s for r in report.records))
    assert 0 < report.audio_in_window_s <= report.audio_s


async def test_what_is_asked_for_in_the_warm_up_is_not_counted(server: Server) -> None:
    report = await put_on(server, streams=1, warm_up_s=0.3, seconds=0.3)
    assert report.records
    assert min(record.sent_s for record in report.records) >= 0.3
    assert report.audio_s > sum(record.audio_s for record in report.records)


async def test_live_listeners_hear_a_text_before_they_ask_for_the_next(server: Server) -> None:
    report = await put_on(server, kind="live", streams=1, seconds=1.0)
    sent = [record.sent_s for record in report.records]
    played = [record.audio_s for record in report.records]
    assert len(sent) > 1
    assert all(b - a >= s for a, b, s in zip(sent, sent[1:], played, strict=False))


async def test_open_arrivals_come_by_themselves_and_are_the_seed_s(server: Server) -> None:
    server.service.solo.behaviour.first_after_s = 0.4
    report = await put_on(server, kind="open", rate=30.0, seconds=0.5, seed=5)
    assert len(report.records) > 5
    assert server.service.solo.counts.max_open > 3
    again = await put_on(server, kind="open", rate=30.0, seconds=0.5, seed=5)
    assert len(again.records) == len(report.records)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_refusals_are_counted_apart_and_repeated_when_the_server_says(
    server: Server, transport: Transport
) -> None:
    behaviour = server.service.solo.behaviour
    behaviour.capacity = 0

    async def make_room() -> None:
        await eventually(lambda: server.service.solo.counts.refused == 1)
        behaviour.capacity = 9

    making_room = asyncio.create_task(make_room())
    records = await put_on_until(server, bool, streams=1, transport=transport)
    await making_room
    assert records[0].outcome == "spoken"
    assert records[0].refusals == 1
    assert records[0].sent_s >= 1.0  # by retry-after
    assert records[0].ttfp_s < records[0].sent_s  # counted from the last request


async def test_listeners_that_reconnect_have_a_connection_for_each_text(server: Server) -> None:
    """They come within a time, and also what they ask for before the warm-up's end counts."""
    records = await put_on_until(
        server,
        lambda records: len(records) > 4,
        kind="reconnecting",
        streams=4,
        arrive_within_s=0.4,
        warm_up_s=300.0,
    )
    assert {record.outcome for record in records} == {"spoken"}
    assert len(records) == server.service.solo.counts.asked > 4
    assert all(record.sent_s > 0 for record in records)


@pytest.mark.parametrize("kind", ["closed", "reconnecting"])
async def test_a_handshake_answered_with_429_is_a_refusal(server: Server, kind: str) -> None:
    behaviour = server.service.solo.behaviour
    other = server.service.duo.behaviour
    behaviour.full = other.full = True
    # So late that the first request comes before, also on a busy machine.
    making_room = asyncio.get_running_loop().call_later(1.0, setattr, behaviour, "full", False)
    report = await put_on(server, kind=kind, streams=1, retry_s=0.3, seconds=2.0)
    making_room.cancel()
    first = report.records[0]
    assert first.outcome == "spoken"
    assert first.refusals >= 1
    assert first.sent_s >= 0.3


async def test_a_client_that_ignores_retry_after_gives_up(server: Server) -> None:
    server.service.solo.behaviour.capacity = 0
    report = await put_on(server, streams=1, honour_retry_after=False)
    assert {record.outcome for record in report.records} == {"refused"}
    assert 0 < len(report.records) < 20  # half a second, and a pause of 0.1 s behind each


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_what_breaks_off_has_failed_and_the_next_text_is_asked_for(
    server: Server, transport: Transport
) -> None:
    behaviour = server.service.solo.behaviour
    behaviour.fail_after, behaviour.error = 2, RequestFailed("made to fail")
    records = await put_on_until(
        server, lambda records: len(records) > 1, streams=1, transport=transport
    )
    assert {record.outcome for record in records} == {"failed"}
    assert all(record.error for record in records)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_server_that_does_not_answer_fails_every_request(transport: Transport) -> None:
    fields = {"kind": "closed", "streams": 1, "warm_up_s": 0.0, "seconds": 0.3}
    spec = LoadSpec.model_validate({**fields, "transport": transport})
    report = await _measure(spec, Target(f"http://127.0.0.1:{free_port()}"), None)
    assert {record.outcome for record in report.records} == {"failed"}


async def test_a_connection_that_is_rejected_has_failed(server: Server) -> None:
    spec = LoadSpec(kind="closed", streams=1, warm_up_s=0.0, seconds=0.3)
    report = await _measure(spec, Target(server.url + "/nowhere"), None)
    assert {record.outcome for record in report.records} == {"failed"}
    assert all("404" in record.error or "403" in record.error for record in report.records)


async def test_a_client_that_is_held_up_says_so(server: Server) -> None:
    async def hold_up() -> None:
        import time

        for _ in range(10):
            time.sleep(0.05)  # noqa: ASYNC251
            await asyncio.sleep(0)

    held_up = asyncio.create_task(hold_up())
    report = await put_on(server, streams=1)
    await held_up
    assert report.health.lag_max_s > 0.03
    assert report.health.behind
