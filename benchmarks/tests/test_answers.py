"""The table of answers: medians, refusals, and sound that comes while the text is written."""

from __future__ import annotations

import base64
import json

import httpx
import pytest

from cantata_bench.answers import Answered, ask, build_row

EARLY = Answered(0.1, 0.5, 0.2, 2.0, pieces=5, audio_s=1.5)
LATE = Answered(0.3, 0.7, 0.9, 4.0, pieces=3, audio_s=2.5)


def test_a_row_tells_medians_and_what_was_refused() -> None:
    row = build_row([[EARLY, LATE], [EARLY, None]], async_chunk=True)
    assert row == ("true", "2", "1", "100 ms", "100.0 ms", "200 ms", "2 of 3", "2.00 s", "0.9")


def event(**audio: str) -> bytes:
    chunk = {"choices": [{"delta": {"audio": audio}}]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


@pytest.mark.asyncio
async def test_an_answer_is_read_from_its_events() -> None:
    sound = base64.b64encode(bytes(48_000)).decode()
    lines = [
        b'data: {"choices": [{"delta": {"role": "assistant"}}]}\n\n',
        event(id="a"),
        event(transcript="Good"),
        event(data=sound),
        event(transcript=" day"),
        event(data=sound),
        b'data: {"choices": [], "usage": {}}\n\ndata: [DONE]\n\n',
    ]
    answers = iter([httpx.Response(200, content=b"".join(lines)), httpx.Response(429)])
    transport = httpx.MockTransport(lambda _: next(answers))
    async with httpx.AsyncClient(base_url="http://server", transport=transport) as http:
        answered = await ask(http, tokens=8, seed=0)
        assert answered is not None
        assert (answered.pieces, answered.audio_s) == (2, 2.0)
        assert answered.first_text_s <= answered.first_sound_s <= answered.text_end_s
        assert await ask(http, tokens=8, seed=0) is None
