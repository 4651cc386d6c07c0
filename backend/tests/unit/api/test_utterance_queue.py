"""The queue of one connection's utterances, without a socket."""

from __future__ import annotations

import asyncio

from fake_service import FakeModel

from cantata.api.speech.messages import AudioDone, AudioStart
from cantata.api.speech.outbox import Outbox
from cantata.api.speech.utterance_queue import Mark, Speak, UtteranceQueue
from cantata.contract.data.request import SpeechRequest
from cantata.metrics import Metrics


async def test_a_cancelled_text_is_not_said_to_be_spoken() -> None:
    """All of its sound has been made and fills the outbox, and none has been taken."""
    model = FakeModel("solo")
    model.behaviour.chunks = 1
    outbox = Outbox(max_bytes=1)
    idle = asyncio.Event()
    utterances = UtteranceQueue(
        outbox, Metrics(), 64, lambda busy: idle.clear() if busy else idle.set()
    )
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        utterances.add([Speak(model, SpeechRequest("hello", "clara"), None), Mark(None)])
        group.create_task(utterances.run(group))
        await idle.wait()
        utterances.cancel()
        utterances.finish()
    outbox.close()
    start, done = await outbox.get(), await outbox.get()
    assert isinstance(start, AudioStart)
    assert isinstance(done, AudioDone)
    assert (done.cancelled, done.samples) == (True, 0)
    assert await outbox.get() is None
