"""Text by words: one utterance that takes text while it is spoken."""

from __future__ import annotations

from fake_service import eventually, expected_pcm
from live_server import Server
from socket_client import client

from cantata.audio.pcm import encode_s16le


def fetch_pcm(server: Server, text: str) -> bytes:
    return encode_s16le(expected_pcm(text, server.solo.behaviour))


async def test_words_become_one_utterance(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="word")
        for piece in (" ", "One. ", "Two. ", "Three."):
            await c.send("input.text", text=piece)
        await c.send("input.done", context_id="a")
        await c.until("audio.done")
        assert (await c.event())["type"] == "input.spoken"
        assert c.pcm == fetch_pcm(server, "One. Two. Three.")
    assert [r.text for r in server.solo.counts.requests] == ["One. Two. Three."]


async def test_it_is_asked_for_with_its_first_words(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="word")
        await c.send("input.text", text="One")
        await eventually(lambda: server.solo.counts.asked == 1)
        await c.submit(" two.")
        await c.until("audio.done")
        assert c.pcm == fetch_pcm(server, "One two.")


async def test_the_next_text_is_the_next_utterance(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="word")
        for text in ("First.", "Second."):
            c.pcm = b""
            await c.speak(text)
            assert c.pcm == fetch_pcm(server, text)
        # A new configuration ends the text that is open, as input.done would.
        await c.send("input.text", text="Third")
        await c.configure(split_granularity="word", seed=3)
        await c.until("audio.done")
        await c.speak("Fourth.")
    assert [(r.text, r.seed) for r in server.solo.counts.requests] == [
        ("First.", None),
        ("Second.", None),
        ("Third", None),
        ("Fourth.", 3),
    ]


async def test_a_cancel_and_a_hang_up_leave_nothing_open(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="word")
        await c.send("input.text", text="One")
        await eventually(lambda: server.solo.counts.asked == 1)
        await c.send("input.cancel")
        await c.until("input.cancelled")
        c.pcm = b""
        await c.speak("Two.")
        assert c.pcm == fetch_pcm(server, "Two.")
        await c.send("input.text", text="Three")
        await eventually(lambda: server.solo.counts.asked == 3)
    await eventually(lambda: server.solo.counts.open == 0)


async def test_more_text_than_an_utterance_may_have_is_dropped(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="word")
        await c.send("input.text", text="x" * 150)
        await c.send("input.text", text="y" * 51)
        error = await c.error()
        assert (error["param"], "201 characters" in error["message"]) == ("text", True)
        await c.submit("z" * 50)
        await c.until("audio.done")
        assert c.pcm == fetch_pcm(server, "x" * 150 + "z" * 50)


async def test_a_model_for_whole_texts_rejects_it(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.send("session.config", model="duo", split_granularity="word")
        error = await c.error()
        assert error["param"] == "split_granularity"
        assert "none, sentence, clause" in error["message"]


async def test_a_model_s_own_options_reach_it_and_no_others(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure(mood="calm", weather="rain")
        await c.speak("Hello.")
    assert [r.options for r in server.solo.counts.requests] == [{"mood": "calm"}]
