"""The client against a server: sound, figures, errors, leaving early."""

from __future__ import annotations

from contextlib import aclosing

import numpy as np
import pytest
from fake_service import eventually, expected_pcm
from live_server import Server

from cantata.audio.pcm import to_s16
from cantata.client import ServerError, connect, stream_speech


async def test_session(server: Server) -> None:
    async with connect(server.url, voice="ben") as session:
        assert (session.model, session.voice) == ("solo", "ben")
        assert (session.sample_rate, session.channels) == (24000, 1)
        pieces = [piece async for piece in session.speak("hello there")]
        expected = to_s16(expected_pcm("hello there", server.solo.behaviour))
        np.testing.assert_array_equal(np.concatenate(pieces), expected)
        assert session.last is not None
        assert session.last.samples == len(expected)
        pieces = [piece async for piece in session.speak("hello", model="duo")]
        assert session.channels == 2
        assert np.concatenate(pieces).shape == (5 * 480, 2)


async def test_session_errors_do_not_reach_the_next_text(server: Server) -> None:
    async with connect(server.url) as session:
        for text in ("x" * 300, "\u4f60\u597d"):
            with pytest.raises(ServerError) as refused:
                [piece async for piece in session.speak(text)]
            assert refused.value.error_code == "invalid_value"
            assert [piece async for piece in session.speak("fine")]
        with pytest.raises(ServerError, match="clara, ben"):
            await session.configure(voice="bob")


async def test_leaving_early_cancels(server: Server) -> None:
    server.solo.behaviour.chunks, server.solo.behaviour.interval_s = 1000, 0.005
    async with connect(server.url, voice="ben") as session:
        async with aclosing(session.speak("a long story")) as pieces:
            await anext(pieces)
        assert session.last is not None
        assert session.last.cancelled
        await eventually(lambda: server.solo.counts.open == 0)
        server.solo.behaviour.chunks = 2
        assert [piece async for piece in session.speak("next")]
    assert [request.voice for request in server.solo.counts.requests] == ["ben", "ben"]


async def test_http(server: Server) -> None:
    server.service.duo.behaviour.chunk_samples = 333
    async with stream_speech(server.url, "hello", model="duo") as stream:
        assert (stream.sample_rate, stream.channels) == (48000, 2)
        samples = np.concatenate([piece async for piece in stream.pcm])
    expected = to_s16(expected_pcm("hello", server.service.duo.behaviour, 2))
    np.testing.assert_array_equal(samples, expected)
    with pytest.raises(ServerError) as refused:
        async with stream_speech(server.url, "hello", voice="bob"):
            pass
    assert (refused.value.error_code, refused.value.param) == ("voice_not_found", "voice")
