"""Speaks one very long text in one request."""

from __future__ import annotations

import asyncio

from cantata_bench.client import Target, open_speaker
from cantata_bench.listener import Listener
from cantata_bench.results import RequestRecord
from cantata_bench.texts import varied_text


def speak_long(target: Target, minutes: float, seed: int) -> RequestRecord:
    """Speak it over the WebSocket, in a process of its own.

    Raises:
        RequestFault: the server could not.
        Refused: the server is at capacity.
    """
    return asyncio.run(_speak(target, varied_text(minutes, seed)))


async def _speak(target: Target, text: str) -> RequestRecord:
    listener = Listener()
    async with open_speaker(target, "websocket", 0) as speaker:
        await speaker.speak(text, listener, lambda audio_s: None)
    return listener.record(0.0, text, refusals=0)
