"""The command's own client comes back when its connection is lost, and notices nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest
from live_server import Server
from resuming_client import slow  # noqa: F401
from websockets.asyncio.server import ServerConnection, serve

from cantata.client.realtime import (
    AnswerEnded,
    AnswerSound,
    AnswerText,
    ConversationInterrupted,
    ConversationResumed,
    Heard,
    RealtimeEvent,
    RealtimeSession,
    open_conversation,
)
from cantata.client.resumable import ReconnectingSocket
from cantata.client.speech import ServerError
from talking import WIRE_RATE, assert_idle, speech

PIECE = WIRE_RATE // 10 * 2


@dataclass
class Conversation:
    """What one client saw."""

    events: list[RealtimeEvent] = field(default_factory=list)

    def of(self, kind: type[RealtimeEvent]) -> list[RealtimeEvent]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def sound(self) -> np.ndarray[tuple[int, int], np.dtype[np.int16]]:
        return np.concatenate([one.pcm for one in self.events if isinstance(one, AnswerSound)])

    @property
    def text(self) -> str:
        return "".join(one.text for one in self.events if isinstance(one, AnswerText))


def cut(session: RealtimeSession) -> None:
    """Abort the TCP connection."""
    connection = session._socket._socket
    assert connection is not None
    connection.transport.abort()


async def converse(
    server: Server, *, cut_pieces: tuple[int, ...] = (), cut_sounds: tuple[int, ...] = ()
) -> Conversation:
    """Ask one question, and take its answer.

    Args:
        server: that answers.
        cut_pieces: pieces of the question before which the connection is lost.
        cut_sounds: pieces of the answer behind which it is.
    """
    seen, sound = Conversation(), speech()

    async def say(session: RealtimeSession) -> None:
        for number, begin in enumerate(range(0, len(sound), PIECE)):
            if number in cut_pieces:
                cut(session)  # before the client notices: this piece is sent in vain
            await session.hear(sound[begin : begin + PIECE])

    async with open_conversation(server.url, None, None) as session, asyncio.TaskGroup() as group:
        await session.configure(None, None, interrupts=True)
        group.create_task(say(session))
        async for event in session.events():
            seen.events.append(event)
            if isinstance(event, AnswerSound) and len(seen.of(AnswerSound)) in cut_sounds:
                cut(session)
            if isinstance(event, AnswerEnded):
                break
    await assert_idle(server.url)
    return seen


@pytest.mark.usefixtures("slow")
async def test_a_question_and_its_answer_outlive_the_connection(server: Server) -> None:
    whole = await converse(server)
    assert len(whole.sound)
    for parts in ({"cut_pieces": (3, 9)}, {"cut_sounds": (1, 4)}):
        torn = await converse(server, **parts)
        assert torn.of(Heard) == whole.of(Heard)
        assert torn.text == whole.text
        np.testing.assert_array_equal(torn.sound, whole.sound)
        assert len(torn.of(ConversationInterrupted)) == len(torn.of(ConversationResumed)) > 0
        assert not whole.of(ConversationInterrupted)


async def test_what_was_sent_in_vain_is_sent_again(server: Server) -> None:
    """All of it arrives once, in order."""
    texts = [f"Text {number}." for number in range(20)]
    socket = ReconnectingSocket(server.url, None, None)
    await socket.connect()
    events = socket.receive()
    await anext(events)  # the session is created: it can be resumed
    for number, text in enumerate(texts):
        if number in (4, 5, 12):
            assert socket._socket is not None
            socket._socket.transport.abort()  # the client has not noticed yet
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        await socket.send("conversation.item.create", item=item)
    arrived: list[str] = []
    while len(arrived) < len(texts):
        event = await anext(events)
        if event["type"] == "conversation.item.done":
            arrived.append(event["item"]["content"][0]["text"])
    assert arrived == texts
    await events.aclose()
    await socket.close()
    await assert_idle(server.url)


@asynccontextmanager
async def forgetful(code: int | None) -> AsyncIterator[ReconnectingSocket]:
    """A client of a server that ends its first connection, and is not reached again.

    Args:
        code: with which it closes; None: the connection is lost.
    """

    async def answer(connection: ServerConnection) -> None:
        resume = {"token": "t", "seconds": 1}
        created = {"type": "session.created", "event_id": "e", "resume": resume}
        await connection.send(json.dumps(created))
        listening.close(close_connections=False)
        if code is None:
            connection.transport.abort()
        else:
            await connection.close(code)

    async with serve(answer, "127.0.0.1", 0) as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        socket = ReconnectingSocket(f"http://127.0.0.1:{port}", None, None)
        await socket.connect()
        yield socket
        await socket.close()


@pytest.mark.parametrize(
    ("code", "seen"),
    [(None, ["session.created", "connection.lost"]), (1011, ["session.created"])],
)
async def test_a_session_that_is_over_says_so(code: int | None, seen: list[str]) -> None:
    """Nobody waits for a server that has closed, nor for ever for one that is gone."""
    kinds = []

    async def receive(socket: ReconnectingSocket) -> None:
        async for event in socket.receive():
            kinds.append(event["type"])  # noqa: PERF401  (those before the error count)

    async with forgetful(code) as socket:
        with pytest.raises(ServerError, match="broke off"):
            await receive(socket)
    assert kinds == seen
