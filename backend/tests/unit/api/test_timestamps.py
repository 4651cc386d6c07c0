"""Word times, and pauses between words, as every client receives them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import numpy as np
import pytest
from fake_service import FakeService, expected_pcm
from live_server import Server, running
from socket_client import Client, Event, client
from typer.testing import CliRunner

from cantata.api.speech.timestamps import MarkClock
from cantata.audio.pcm import to_s16
from cantata.cli.app import app
from cantata.client import connect, stream_speech
from cantata.contract.service import SpokenWord

CHUNK_S = 480 / 24000
"""The fake's sound of one character."""


def word(text: str, text_start: int, utterance_start: int = 0) -> Event:
    """The expected times of a word whose utterance begins at this character of the input."""
    start = text_start - utterance_start
    return {
        "text": text,
        "start": round(start * CHUNK_S, 3),
        "end": round((start + len(text)) * CHUNK_S, 3),
        "text_start": text_start,
        "text_end": text_start + len(text),
    }


async def heard(c: Client) -> list[Event]:
    """The timestamps up to `input.spoken`."""
    events = []
    while (event := await c.event())["type"] != "input.spoken":
        assert event["type"] != "error", event
        if event["type"] == "audio.timestamps":
            events.append(event)
    return events


async def test_words_of_an_utterance_come_before_their_sound(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure(timestamps=True)
        await c.send("input.text", text="  hello ")
        await c.send("input.text", text="there", context_id="x")
        await c.send("input.done", context_id="x")
        start = await c.until("audio.start")
        first = await c.event()
        assert first == {
            "type": "audio.timestamps",
            "context_id": "x",
            "utterance_id": start["utterance_id"],
            "words": [word("hello", 2, 2)],
        }
        assert c.pcm == b""
        second = await c.until("audio.timestamps")
        assert second["words"] == [word("there", 8, 2)]
        assert len(c.pcm) == 6 * 480 * 2


async def test_offsets_run_through_all_sentences_of_an_input(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure(timestamps=True, split_granularity="sentence")
        for text in ("One. ", " Two", " three.\n", "Four"):
            await c.send("input.text", text=text)
        await c.send("input.done")
        words = [w for event in await heard(c) for w in event["words"]]
        assert words == [
            word("One", 0),
            word("Two", 6, 6),
            word("three", 10, 6),
            word("Four", 17, 17),
        ]
        await c.send("input.text", text="Next")  # a new input counts from its own start
        await c.send("input.done")
        assert (await heard(c))[0]["words"] == [word("Next", 0)]
        await c.send("input.text", text="forgotten ")
        await c.send("input.cancel")
        await c.submit("anew")
        assert (await heard(c))[0]["words"] == [word("anew", 0)]


async def test_timestamps_are_sent_only_on_request(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure()
        await c.submit("hello")
        assert await heard(c) == []


@pytest.mark.parametrize("size", [1, 3, 100])
async def test_a_pause_is_never_cut_however_it_arrives(server: Server, size: int) -> None:
    text = "Wait. [pause 1.5s] Now [pause 2. 5s] go! [pause 500ms]"
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="sentence")
        for start in range(0, len(text), size):
            await c.send("input.text", text=text[start : start + size])
        await c.send("input.done")
        await heard(c)
    requests = [(r.text, r.continued) for r in server.solo.counts.requests]
    assert requests == [
        ("Wait.", False),
        ("[pause 1.5s] Now [pause 2. 5s] go!", False),
        ("[pause 500ms]", True),
    ]


def collect_events(body: str) -> list[Event]:
    return [json.loads(line.removeprefix("data: ")) for line in body.split("\n\n") if line]


async def test_server_sent_events(http: httpx.AsyncClient) -> None:
    body = {"input": "hello there", "response_format": "pcm", "stream_format": "sse"}
    response = await http.post("/v1/audio/speech", json={**body, "timestamps": True})
    events = collect_events(response.text)
    kinds = [event["type"].removeprefix("speech.audio.") for event in events]
    # Each word right ahead of the sound that it begins with.
    assert kinds == ["timestamps", *6 * ["delta"], "timestamps", *5 * ["delta"], "done"]
    told = [w for event in events if event["type"].endswith("timestamps") for w in event["words"]]
    assert told == [word("hello", 0), word("there", 6)]
    response = await http.post("/v1/audio/speech", json=body)
    assert "timestamps" not in response.text


async def test_a_file_has_no_place_for_timestamps(http: httpx.AsyncClient) -> None:
    response = await http.post("/v1/audio/speech", json={"input": "hello", "timestamps": True})
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["param"] == "timestamps"
    assert '"stream_format": "sse"' in error["message"]


async def test_client(server: Server) -> None:
    async with connect(server.url, timestamps=True, split_granularity="sentence") as session:
        text = "One. Two three."
        for _ in range(2):  # the second text's words are its own
            pieces = [piece async for piece in session.speak(text)]
            assert [text[w.text_start : w.text_end] for w in session.words] == [
                "One",
                "Two",
                "three",
            ]
            # The second sentence begins when the first one, four characters, is over.
            starts = [w.start_s for w in session.words]
            assert starts == pytest.approx([0, 4 * CHUNK_S, 8 * CHUNK_S])
            assert sum(map(len, pieces)) == 14 * 480
    async with stream_speech(server.url, "hello there", timestamps=True) as stream:
        samples = np.concatenate([piece async for piece in stream.pcm])
    np.testing.assert_array_equal(
        samples, to_s16(expected_pcm("hello there", server.solo.behaviour))
    )
    assert [(w.text_start, w.text_end) for w in stream.words] == [(0, 5), (6, 11)]


async def test_say_writes_them_beside_the_sound(tmp_path: Path) -> None:
    service = FakeService()
    book = tmp_path / "book.txt"
    book.write_text("\ufeffhello there", encoding="utf-8")
    async with running(service) as server:
        await server.app.state.context.lifecycle.settled.wait()
        arguments = ["say", "-f", str(book), "--server", server.url, "-o", str(tmp_path / "a.wav")]
        result = await asyncio.to_thread(
            CliRunner().invoke, app, [*arguments, "--timestamps", str(tmp_path / "a.json")]
        )
        assert result.exit_code == 0, result.output
    told = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert told == [word("hello", 0), word("there", 6)]


async def test_marks_come_with_their_times_among_the_words(server: Server) -> None:
    text = 'go <mark name="turn"/>left <mark name="end"/>'
    async with client(server.socket_url) as c:
        await c.configure(timestamps=True)
        await c.send("input.text", text=text)
        await c.send("input.done")
        marks = [await c.until("audio.marks") for _ in range(2)]
    body = {"input": text, "stream_format": "sse", "timestamps": True, "response_format": "pcm"}
    async with httpx.AsyncClient(base_url=server.url) as http:
        answer = await http.post("/v1/audio/speech", json=body)
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n") if line]
    events = [
        event for line in lines if (event := json.loads(line))["type"] == "speech.audio.marks"
    ]
    for found in (marks, events):
        (turn,), (end,) = (event["marks"] for event in found)
        # The fake speaks the tags' letters too.
        assert turn == {"name": "turn", "time": round(4 * CHUNK_S, 3), "text_start": 3}
        assert end == {"name": "end", "time": round(28 * CHUNK_S, 3), "text_start": 27}


def test_a_mark_is_at_the_next_word_or_where_a_pause_begins_or_at_the_end() -> None:
    text = 'a<mark name="1"/> b<mark name="2"/><break/> c<mark name="3"/>'
    b, c = text.index("b<"), text.index("c<")
    clock = MarkClock(text, offset=10)
    first = clock.take_until([SpokenWord(0, 1, 0.1, 0.2)])
    second = clock.take_until([SpokenWord(b, b + 1, 0.3, 0.4)])
    third = clock.take_until([SpokenWord(c, c + 1, 1.3, 1.4)])
    timed = [first, second, third, clock.take_rest(2.0)]
    assert [[(one.name, one.time) for one in some] for some in timed] == [
        [],
        [("1", 0.3)],
        [("2", 0.4)],
        [("3", 2.0)],
    ]
    assert second[0].text_start == 10 + 1


async def test_ssml_without_effect_is_named(server: Server) -> None:
    body = {"input": "<emphasis>now</emphasis>", "response_format": "pcm"}
    async with httpx.AsyncClient(base_url=server.url) as http:
        answer = await http.post("/v1/audio/speech", json=body)
    assert answer.headers["x-ignored"] == "ssml:emphasis"
