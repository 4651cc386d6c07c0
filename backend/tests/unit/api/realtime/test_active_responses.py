"""The answer in progress, and what ends it."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

from cantata.api.realtime.active_responses import ActiveResponses
from cantata.api.realtime.reply import Reply
from cantata.api.realtime.session_settings import SessionSettings


async def test_a_lost_connection_ends_an_answer_while_a_library_cancels_its_task() -> None:
    """anyio cancels the task that connects, for itself, when the first address has answered."""
    responses: ActiveResponses
    went_on = False

    async def answer(reply: Reply, items: object) -> None:
        nonlocal went_on
        assert reply.task is not None
        reply.task.cancel()
        responses.stop()
        responses.stop()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if reply.task.uncancel():
                raise
        went_on = True

    gauge = SimpleNamespace(track_inprogress=nullcontext)
    metrics = SimpleNamespace(conversations=SimpleNamespace(responses=gauge))
    session = SimpleNamespace(
        api_context=SimpleNamespace(metrics=metrics),
        responder=SimpleNamespace(answer=answer),
        emit=lambda *events: None,
        spawn=asyncio.create_task,
    )
    responses = ActiveResponses(cast(Any, session))
    reply = Reply(SessionSettings(output_modalities=["text"]), None, None)
    responses.start(reply, (), ())
    assert reply.task is not None
    await asyncio.wait([reply.task], timeout=5)
    assert reply.task.cancelled()
    assert not went_on
    assert reply.task.cancelling() == 1, "a second cancel would break into the first one's abort"
