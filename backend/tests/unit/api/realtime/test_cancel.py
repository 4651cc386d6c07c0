"""Barge-in and cancels: what ends, what still leaves, and what is remembered of an answer."""

from __future__ import annotations

import asyncio

import pytest
from endpoints import Endpoints
from fake_service import eventually
from live_server import Server
from websockets.asyncio.client import connect

from cantata.api.realtime.conversation import PlayoutTimes
from cantata.speech_input.settings import RealtimeSettings
from talking import SPOKEN, WIRE_RATE, Talker, assert_idle, cancelled, speech, talker

LONG = "A long answer of many words that nobody hears to its end."
ENDED = SPOKEN[2:]


@pytest.fixture
def slow(server: Server, others: Endpoints) -> None:
    """Answers that last much longer than a test, and a chat that never finishes."""
    server.solo.behaviour.chunks = 5_000
    server.solo.behaviour.interval_s = 0.002
    others.deltas = [LONG]


async def begin(c: Talker) -> str:
    """An answer that sounds; its item's id."""
    await c.write("Go on.")
    await c.send("response.create")
    await c.until("response.output_audio.delta")
    (item_id,) = {e["item_id"] for e in c.events if e["type"] == "response.output_audio.delta"}
    return str(item_id)


@pytest.mark.usefixtures("slow")
async def test_speech_interrupts_an_answer(server: Server, others: Endpoints) -> None:
    others.deltas = [LONG, " And more."]
    async with talker(server.url) as c:
        # The fake model speaks complete texts: the chat must end.
        await begin(c)
        await c.say(speech())
        await c.until("input_audio_buffer.speech_started")
        await c.until("response.done")
        place = [event["type"] for event in c.events].index("input_audio_buffer.speech_started")
        assert [event["type"] for event in c.events[place + 1 :]] == ENDED, "no sound after it"
        cancelled(c, "turn_detected")
        assert server.solo.counts.aborted == 1
        # What was said becomes the next turn, of the same session.
        server.solo.behaviour.chunks = 3
        c.events.clear()
        done = await c.until("response.done")
        assert done["response"]["status"] == "completed"
        assert c.sound()
    assert server.solo.counts.abort_interrupted == 0
    await assert_idle(server.url)


@pytest.mark.usefixtures("slow")
async def test_a_cancel_ends_the_chat_too(server: Server, others: Endpoints) -> None:
    others.deltas, others.gate = ["One. ", "Two."], asyncio.Event()
    async with talker(server.url, "?model=duo") as c:
        server.service.duo.behaviour.chunks = 5_000
        server.service.duo.behaviour.interval_s = 0.002
        await begin(c)
        assert others.open == 1
        await c.send("response.cancel", event_id="mine")
        c.events.clear()
        await c.until("response.done")
        kinds = [e["type"] for e in c.events if e["type"] != "response.output_audio.delta"]
        assert kinds == ENDED
        cancelled(c, "client_cancelled")
        await eventually(lambda: others.open == 0 and server.service.duo.counts.open == 0)
        await assert_idle(server.url)
        assert (await refused(c, "response.cancel"))["code"] == "response_cancel_not_active"


async def refused(c: Talker, kind: str, **fields: object) -> dict[str, object]:
    await c.send(kind, **fields)
    return await c.error()


@pytest.mark.usefixtures("slow")
async def test_a_user_may_be_kept_from_interrupting(server: Server, others: Endpoints) -> None:
    vad = {"type": "server_vad", "interrupt_response": False}
    async with talker(server.url) as c:
        await c.update(audio={"input": {"turn_detection": vad}})
        await begin(c)
        await c.say(speech())
        await c.until("conversation.item.done")
        assert (await c.error())["code"] == "conversation_already_has_active_response"
        await c.until("response.output_audio.delta")
        await c.send("response.cancel")
        await c.until("response.done")
    await assert_idle(server.url)


@pytest.mark.usefixtures("slow")
async def test_whoever_hangs_up_leaves_nothing(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        await begin(c)
        await c.say(speech(0.5, 0.0))
    await eventually(lambda: server.solo.counts.open == 0)
    await assert_idle(server.url)


async def test_what_was_not_heard_is_forgotten(server: Server, others: Endpoints) -> None:
    """The fake model's words are 20 ms a character."""
    others.deltas = ["Heard words and unheard ones."]
    async with talker(server.url) as c:
        await c.write("Speak.")
        await c.send("response.create")
        item = (await c.until("response.done"))["response"]["output"][0]
        duration_ms = len(c.sound()) * 1000 // (2 * WIRE_RATE)
        assert duration_ms == 20 * len(others.deltas[0])

        too_late = await refused(
            c,
            "conversation.item.truncate",
            item_id=item["id"],
            content_index=0,
            audio_end_ms=duration_ms + 1,
        )
        assert (too_late["code"], too_late["param"]) == ("invalid_value", "audio_end_ms")
        await c.send(
            "conversation.item.truncate", item_id=item["id"], content_index=0, audio_end_ms=250
        )
        event = await c.until("conversation.item.truncated")
        assert (event["item_id"], event["audio_end_ms"]) == (item["id"], 250)
        await c.send("conversation.item.retrieve", item_id=item["id"])
        shown = (await c.until("conversation.item.retrieved"))["item"]
        assert shown["content"] == [{"type": "output_audio", "transcript": "Heard words"}]
        await c.send("response.create")
        await c.until("response.done")
        assert others.asked[1]["messages"][-1] == {"role": "assistant", "content": "Heard words"}


async def test_an_answer_sounds_before_its_sentence_is_written(
    server: Server, others: Endpoints
) -> None:
    """The chat goes on only after the first sound. What was heard of both pieces is known: `duo`'s
    words are 10 ms a character."""
    others.deltas = ["When the kettle boils, we", " shall have some tea."]
    others.gate = asyncio.Event()
    async with talker(server.url, "?model=duo") as c:
        await c.write("Speak.")
        await c.send("response.create")
        await c.until("response.output_audio.delta")
        assert others.open == 1
        others.gate.set()
        item = (await c.until("response.done"))["response"]["output"][0]
        said = ["When the kettle boils,", "we shall have some tea."]
        assert [request.text for request in server.service.duo.counts.requests] == said
        assert item["content"][0]["transcript"] == "".join(others.deltas)
        kind = "conversation.item.truncate"
        await c.send(kind, item_id=item["id"], content_index=0, audio_end_ms=10 * 30 + 5)
        await c.until("conversation.item.truncated")
        await c.send("conversation.item.retrieve", item_id=item["id"])
        shown = (await c.until("conversation.item.retrieved"))["item"]
        assert shown["content"][0]["transcript"] == "When the kettle boils, we shall"


async def test_an_opening_that_is_interrupted_has_no_rest(
    server: Server, others: Endpoints
) -> None:
    others.deltas = ["When the kettle boils, we shall, as ever", ", have tea."]
    others.gate = asyncio.Event()
    async with talker(server.url, "?model=duo") as c:
        await c.write("Speak.")
        await c.send("response.create")
        await c.until("response.output_audio.delta")
        await c.send("response.cancel")
        await c.until("response.done")
        await eventually(lambda: others.open == 0)
        others.deltas, others.gate = ["Good."], None
        await c.send("response.create")
        await c.until("response.done")
    first, *_, last = [request.text for request in server.service.duo.counts.requests]
    assert (first, last) == ("When the kettle boils, we shall,", "Good.")
    await assert_idle(server.url)


@pytest.mark.usefixtures("slow")
async def test_truncating_ends_an_answer_that_is_being_spoken(
    server: Server, others: Endpoints
) -> None:
    async with talker(server.url) as c:
        item_id = await begin(c)
        fields = {"content_index": 0, "audio_end_ms": 0}
        kind = "conversation.item.truncate"
        user_id = next(e["item"]["id"] for e in c.events if e["type"] == "conversation.item.added")
        assert (await refused(c, kind, item_id=user_id, **fields))["param"] == "item_id"
        assert (await refused(c, kind, item_id="none", **fields))["code"] == "item_not_found"
        far = {**fields, "audio_end_ms": 3_600_000}
        assert (await refused(c, kind, item_id=item_id, **far))["param"] == "audio_end_ms"
        await c.send(kind, item_id=item_id, **fields)
        await c.until("response.done")
        cancelled(c, "client_cancelled")
        await c.until("conversation.item.truncated")
        server.solo.behaviour.chunks = 1
        await c.send("response.create")
        await c.until("response.done")
        last = others.asked[-1]["messages"][-1]
        assert last["role"] == "user", "nothing of the answer was heard"


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("limits", [RealtimeSettings(max_ahead_s=1000)])
async def test_a_client_that_reads_nothing_holds_little(server: Server, others: Endpoints) -> None:
    address = server.url.replace("http", "ws", 1) + "/v1/realtime"
    server.solo.behaviour.interval_s = 0
    async with connect(address, max_queue=1, close_timeout=0.5) as socket:
        await Talker(socket).send("response.create")
        await eventually(lambda: server.solo.counts.chunks > 50)
        made = -1
        while made != server.solo.counts.chunks:
            made = server.solo.counts.chunks
            await asyncio.sleep(0.3)
        assert made < 2000, "5,000 chunks were there to be made"
        await Talker(socket).send("response.cancel")
        await eventually(lambda: server.solo.counts.open == 0)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("limits", [RealtimeSettings(max_ahead_s=2)])
async def test_sound_is_not_made_far_ahead_of_its_listener(
    server: Server, others: Endpoints
) -> None:
    """An answer of 100 s, as fast as it can be: what nobody has heard yet may be in vain."""
    server.solo.behaviour.interval_s = 0
    async with talker(server.url) as c:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await begin(c)
        while len(c.sound()) < 2.5 * 2 * WIRE_RATE:
            await c.until("response.output_audio.delta")
        # What was received after the first two seconds had to wait for its time.
        assert len(c.sound()) / (2 * WIRE_RATE) < loop.time() - before + 2.5
        await c.send("response.cancel")
        await c.until("response.done")


@pytest.mark.parametrize(
    ("spoken", "until_s", "heard"),
    [
        (PlayoutTimes(2.0, [0.5, 1.0], [3, 7]), 0.7, "One"),
        (PlayoutTimes(2.0, [0.5, 1.0], [3, 7]), 0.4, ""),
        (PlayoutTimes(2.0, whole=True), 2.0, "One two three four"),
        (PlayoutTimes(2.0, whole=True), 1.0, "One two"),
        (PlayoutTimes(0.6), 0.6, "One two"),
        (PlayoutTimes(0.6, speed=1.5), 0.6, "One two three"),
        (PlayoutTimes(0.0), 0.0, ""),
    ],
)
def test_the_heard_part_of_an_answer(spoken: PlayoutTimes, until_s: float, heard: str) -> None:
    """By word times, by the whole sound, or at a usual pace of 15 characters a second."""
    assert spoken.truncate_text("One two three four", until_s) == heard
