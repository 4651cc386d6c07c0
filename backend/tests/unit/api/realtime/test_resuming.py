"""A session outlives its connection: whoever comes back in time misses nothing, and gets nothing
twice."""

from __future__ import annotations

import asyncio
import gc
import json
from dataclasses import replace

import httpx
import pytest
from endpoints import Endpoints
from fake_service import FakeService, eventually
from live_server import Server, running, until_still
from resuming_client import (
    LONG,
    RESUMABLE,
    again,
    ask,
    closing,
    cut,
    last_id,
    lost,
    refusal,
    repeatable,
    slow,  # noqa: F401
    token,
)
from websockets.exceptions import InvalidStatus

from cantata.api.realtime.connection import RealtimeConnection
from cantata.api.settings import ServerSettings
from cantata.speech_input.settings import RealtimeSettings, ResumingSettings
from talking import WIRE_RATE, Event, Talker, assert_idle, speech, talker


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("cuts", [(1,), (5,), (2, 3, 4)])
async def test_an_answer_that_was_cut_is_that_of_an_uncut_connection(
    server: Server, cuts: tuple[int, ...]
) -> None:
    async with talker(server.url) as whole:
        await ask(whole)
        await whole.until("response.done")
    async with talker(server.url, RESUMABLE) as c:
        resume = token(c)
        await ask(c)
        for _ in range(cuts[0]):
            await c.until("response.output_audio.delta")
        cut(c)
        events = c.events
    for count in cuts[1:]:
        async with again(server.url, resume, events[-1]["event_id"], events) as c:
            for _ in range(count):
                await c.until("response.output_audio.delta")
            cut(c)
            events = c.events
    async with again(server.url, resume, events[-1]["event_id"], events) as c:
        await c.until("response.done")
    assert c.sound() == whole.sound()
    assert repeatable(c.events) == repeatable(whole.events)
    ids = [event["event_id"] for event in c.events]
    assert len(set(ids)) == len(ids)
    assert "session.resumed" in c.types()
    await assert_idle(server.url)


@pytest.mark.usefixtures("slow")
async def test_what_was_sent_and_did_not_arrive_is_sent_again_as_it_was(server: Server) -> None:
    async with talker(server.url, RESUMABLE) as c:
        await ask(c)
        await c.until("response.output_audio.delta")
        behind = last_id(c)
        place = len(c.events)
        await c.until("response.done")
        cut(c)
    async with again(server.url, token(c), behind) as late:
        await late.until("session.resumed")
    assert late.events[:-1] == c.events[place:]


async def test_the_answer_goes_on_while_nobody_listens(server: Server, others: Endpoints) -> None:
    others.gate = asyncio.Event()
    others.deltas = ["One. ", "Two."]
    duo = server.service.duo
    async with talker(server.url, f"{RESUMABLE}&model=duo") as c:
        await ask(c)
        await c.until("response.output_audio.delta")
        cut(c)
    await lost(server)
    others.gate.set()
    await eventually(lambda: duo.counts.finished == duo.counts.started == 2)
    async with again(server.url, token(c), last_id(c), c.events) as back:
        done = await back.until("response.done")
        (item,) = done["response"]["output"]
        assert item["content"][0]["transcript"] == "One. Two."
        # Settings, conversation and detector are those of before.
        await back.write("And then?")
        await back.send("response.create")
        await back.until("response.done")
    said = [message["content"] for message in others.asked[-1]["messages"]]
    assert said == ["Go on.", "One. Two.", "And then?"]


async def test_the_client_learns_which_of_its_events_arrived(
    server: Server, others: Endpoints
) -> None:
    """All of them arrive once, whatever was on its way when the connection broke."""
    texts = [f"Text {number}." for number in range(20)]

    async def write(c: Talker, number: int) -> None:
        item = {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": texts[number]}],
        }
        await c.send("conversation.item.create", item=item)

    async with talker(server.url, RESUMABLE) as c:
        for number in range(len(texts) // 2):
            await write(c, number)
        cut(c)
    await lost(server)
    async with again(server.url, token(c), last_id(c)) as back:
        resumed = await back.until("session.resumed")
        assert 0 <= resumed["received"] <= len(texts) // 2
        for number in range(resumed["received"], len(texts)):
            await write(back, number)
        await back.send("response.create")
        await back.until("response.done")
    # Messages of one side in a row stay apart.
    assert [message["content"] for message in others.asked[-1]["messages"]] == texts


async def test_a_turn_may_be_spoken_over_two_connections(server: Server) -> None:
    sound = speech()
    middle = len(sound) // 4 * 2
    vad = {"type": "server_vad", "create_response": False}
    settings = {"input": {"turn_detection": vad, "transcription": {}}}

    async def hear(c: Talker) -> tuple[Event, Event]:
        stopped = await c.until("input_audio_buffer.speech_stopped")
        heard = await c.until("conversation.item.input_audio_transcription.completed")
        return stopped, heard

    async with talker(server.url) as whole:
        await whole.update(audio=settings)
        await whole.say(sound)
        expected = await hear(whole)
    async with talker(server.url, RESUMABLE) as c:
        changed = await c.update(audio=settings)
        await c.say(sound[:middle])
        await c.until("input_audio_buffer.speech_started")
        (session,) = server.app.state.context.resumable._open.values()
        sent = 1 + -(-middle // 48_000)
        await eventually(lambda: session.socket._count == sent)
        cut(c)
    async with again(server.url, token(c), last_id(c), c.events) as back:
        await back.say(sound[middle:])
        got = await hear(back)
        after = await back.update(instructions="Be kind.")
        assert after == {**changed, "instructions": "Be kind."}
    fields = ("audio_end_ms", "transcript", "usage")
    shown = [[{f: e[f] for f in fields if f in e} for e in pair] for pair in (got, expected)]
    assert shown[0] == shown[1]
    assert got[0]["audio_end_ms"] <= len(sound) * 1000 // (2 * WIRE_RATE)


@pytest.mark.usefixtures("slow")
async def test_another_connection_takes_over(server: Server) -> None:
    """A client notices that its network has gone before the server does."""
    async with talker(server.url, RESUMABLE) as first:
        await ask(first)
        await first.until("response.output_audio.delta")
        async with again(server.url, token(first), last_id(first), first.events) as second:
            await second.until("response.done")
            code, reason = await closing(first)
            assert code == 1008
            assert "another connection" in reason
    async with talker(server.url) as whole:
        await ask(whole)
        await whole.until("response.done")
    assert second.sound() == whole.sound()


@pytest.mark.usefixtures("slow")
async def test_whoever_closes_has_left(server: Server) -> None:
    for code in (1000, 1001):
        async with talker(server.url, RESUMABLE) as c:
            await ask(c)
            await c.until("response.output_audio.delta")
            await c.socket.close(code)
        await eventually(lambda: server.app.state.context.resumable.count == 0)
        status, error = await refusal(server.url, token(c), last_id(c))
        assert (status, error["code"]) == (404, "session_not_found")
    assert server.solo.counts.aborted == 2
    await assert_idle(server.url)


@pytest.mark.usefixtures("slow")
async def test_who_did_not_ask_for_it_notices_nothing(server: Server) -> None:
    async with talker(server.url) as c:
        assert set(c.events[0]) == {"type", "event_id", "session"}
        await ask(c)
        await c.until("response.output_audio.delta")
        cut(c)
    await eventually(lambda: server.solo.counts.aborted == 1)
    assert server.app.state.context.resumable.count == 0
    await assert_idle(server.url)


async def test_it_waits_for_some_time_and_leaves_nothing(others: Endpoints) -> None:
    service = FakeService()
    service.solo.behaviour.interval_s = 0.05
    others.deltas = [LONG]
    limits = RealtimeSettings(chat=others.chat, resuming=ResumingSettings(kept_s=0.5))
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        async with talker(server.url, RESUMABLE) as c:
            assert c.events[0]["resume"]["seconds"] == 0.5
            await ask(c)
            await c.until("response.output_audio.delta")
            cut(c)
        await lost(server)
        assert service.solo.counts.open == 1
        await eventually(lambda: server.app.state.context.resumable.count == 0)
        assert service.solo.counts.open == 0
        status, error = await refusal(server.url, token(c), last_id(c))
        assert (status, error["code"], error["param"]) == (404, "session_not_found", "resume")
        assert "too long" in error["message"]
        await assert_idle(server.url)
        gc.collect()
        assert not [one for one in gc.get_objects() if isinstance(one, RealtimeConnection)]
        async with httpx.AsyncClient() as http:
            metrics = (await http.get(f"{server.url}/metrics")).text
        assert "cantata_realtime_sessions 0.0" in metrics


@pytest.mark.usefixtures("slow")
async def test_memory_is_bounded_and_who_lost_too_much_is_told(others: Endpoints) -> None:
    service = FakeService()
    others.deltas = [LONG]
    few = ResumingSettings(max_bytes=40_000)
    limits = RealtimeSettings(chat=others.chat, resuming=few)
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        async with talker(server.url, RESUMABLE) as c:
            created = last_id(c)
            await ask(c)
            await c.until("response.done")
            (session,) = server.app.state.context.resumable._open.values()
            assert session.socket._sent._written_bytes <= few.max_bytes
            cut(c)
        await lost(server)
        status, error = await refusal(server.url, token(c), created)
        assert (status, error["code"], error["param"]) == (409, "events_lost", "after")
        assert "39 KiB" in error["message"]
        async with again(server.url, token(c), last_id(c)) as back:
            await back.until("session.resumed")
            assert len(back.events) == 1


async def test_more_than_may_be_kept_is_not_made_until_somebody_listens(
    others: Endpoints,
) -> None:
    service = FakeService()
    others.deltas = [LONG]
    limits = RealtimeSettings(chat=others.chat, resuming=ResumingSettings(max_bytes=40_000))
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        async with talker(server.url) as whole:
            await ask(whole)
            await whole.until("response.done")
        service.solo.behaviour.may_sound = asyncio.Event()
        async with talker(server.url, RESUMABLE) as c:
            await ask(c)
            await c.until("response.created")
            cut(c)
        await lost(server)
        service.solo.behaviour.may_sound.set()
        (session,) = server.app.state.context.resumable._open.values()
        await eventually(lambda: session.socket._sent.is_full)
        await until_still(lambda: session.socket._sent._waiting_bytes)
        assert session.socket._sent._waiting_bytes < 2 * 40_000
        async with again(server.url, token(c), last_id(c), c.events) as back:
            await back.until("response.done")
        assert back.sound() == whole.sound()


async def test_whoever_is_lost_again_gets_the_latest_count_alone(server: Server) -> None:
    """A count that did not arrive would have the client send its events twice."""
    async with talker(server.url, RESUMABLE) as c:
        after, (session,) = last_id(c), server.app.state.context.resumable._open.values()
        cut(c)
    await lost(server)
    session.socket.drop(session.socket.connect(after))  # a client that was gone at once
    async with again(server.url, token(c), after) as back:
        await back.write("Hello.")
        cut(back)
    await lost(server)
    async with again(server.url, token(c), after) as back:
        assert (await back.until("session.resumed"))["received"] == 1
        await back.write("Hello.")
    assert back.types().count("session.resumed") == 1


async def test_as_many_as_may_be(others: Endpoints) -> None:
    service = FakeService()
    limits = RealtimeSettings(chat=others.chat, resuming=ResumingSettings(max_sessions=1))
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        async with talker(server.url, RESUMABLE):
            with pytest.raises(InvalidStatus) as refused:
                async with talker(server.url, RESUMABLE):
                    pass
            assert refused.value.response.status_code == 429
            async with talker(server.url):
                pass
        await eventually(lambda: server.app.state.context.resumable.count == 0)
        async with talker(server.url, RESUMABLE):
            pass


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("?resume=resume_1", "after"),
        ("?resumable=perhaps", "resumable"),
        ("?call_id=rtc_1&resumable=true", "resumable"),
        ("?call_id=rtc_1&resume=resume_1", "resume"),
        (f"?resume={'x' * 200}&after=y", "resume"),
    ],
)
async def test_an_address_that_makes_no_sense_is_refused(
    server: Server, query: str, param: str
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with talker(server.url, query):
            pass
    assert refused.value.response.status_code == 400
    assert json.loads(refused.value.response.body or b"")["error"]["param"] == param


async def test_a_stopping_server_waits_for_nobody(others: Endpoints) -> None:
    service = FakeService()
    service.solo.behaviour.may_sound = asyncio.Event()
    limits = replace(RealtimeSettings(), chat=others.chat)
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        async with talker(server.url, RESUMABLE) as c, talker(server.url, RESUMABLE) as there:
            await ask(c)
            await eventually(lambda: service.solo.counts.open == 1)
            cut(c)
            await lost(server)
            server.stop()
            await eventually(lambda: service.solo.counts.open == 0)
            assert (await closing(there))[0] == 1001
            assert there.events[-1]["error"]["code"] == "going_away"


async def test_the_betas_clients_can_come_back_too(server: Server, others: Endpoints) -> None:
    beta = {"additional_headers": {"OpenAI-Beta": "realtime=v1"}}
    others.deltas = [LONG]
    async with talker(server.url, RESUMABLE, **beta) as c:
        await ask_in_beta(c)
        await c.until("response.audio.delta")
        cut(c)
    async with again(server.url, token(c), last_id(c)) as back:
        await back.until("response.done")
    assert "response.audio.delta" in back.types()


async def ask_in_beta(c: Talker) -> None:
    content = [{"type": "input_text", "text": "Go on."}]
    item = {"type": "message", "role": "user", "content": content}
    await c.send("conversation.item.create", item=item)
    await c.send("response.create")
