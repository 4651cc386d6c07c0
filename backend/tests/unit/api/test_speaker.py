"""The queue of one connection's utterances, without a socket."""

from __future__ import annotations

import asyncio

from fake_service import FakeModel

from cantata.api.messages import AudioDone, AudioStart
from cantata.api.outbox import Outbox
from cantata.api.speaker import Mark, Speak, Speaker
from cantata.contract.request import SpeechRequest
from cantata.metrics import Metrics


async def test_a_cancelled_text_is_not_said_to_be_spoken() -> None:
    """All of its sound is made and fills the outbox, and nobody has taken any of it."""
    model = FakeModel("solo")
    model.behaviour.chunks = 1
    outbox = Outbox(max_bytes=1)
    idle = asyncio.Event()
    speaker = Speaker(outbox, Metrics(), 64, lambda busy: idle.clear() if busy else idle.set())
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        speaker.add([Speak(model, SpeechRequest("hello", "clara"), None), Mark(None)])
        group.create_task(speaker.run(group))
        await idle.wait()
        speaker.cancel()
        speaker.finish()
    outbox.close()
    start, done = await outbox.get(), await outbox.get()
    assert isinstance(start, AudioStart)
    assert isinstance(done, AudioDone)
    assert (done.cancelled, done.samples) == (True, 0)
    assert await outbox.get() is None
