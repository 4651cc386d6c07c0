"""A server is killed during a spoken answer: who comes back to its successor is told that the
conversation is over, and can begin another one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from cantata.client.resumable import LOST, ReconnectingSocket
from cantata.client.speech import ServerError
from cantata_bench.server import free_port, running_server

pytestmark = [pytest.mark.e2e, pytest.mark.level1, pytest.mark.thorough]

OPTIONS = ("--model", "quartet")
SOUND, DONE = "response.output_audio.delta", "response.done"
LONG = "This is said at some length. " * 40


async def ask(socket: ReconnectingSocket, text: str) -> None:
    content = [{"type": "input_text", "text": text}]
    item = {"type": "message", "role": "user", "content": content}
    await socket.send("conversation.item.create", item=item)
    await socket.send("response.create")


async def test_a_session_of_a_killed_server_is_refused_and_a_new_one_answers(
    tmp_path: Path,
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with running_server(tmp_path / "first.log", port=port, options=OPTIONS) as first:
        socket = ReconnectingSocket(url, None, None)
        await socket.connect()
        await ask(socket, LONG)
        events = socket.receive()
        while (await anext(events))["type"] != SOUND:
            pass
        os.kill(first.pid, signal.SIGKILL)
        while (event := await anext(events))["type"] != LOST:
            assert event["type"] != DONE, "the answer was over before the server was killed"
    with running_server(tmp_path / "second.log", port=port, options=OPTIONS):
        with pytest.raises(ServerError, match="before its restart"):
            await anext(events)
        again = ReconnectingSocket(url, None, None)
        await again.connect()
        await ask(again, "Hello.")
        kinds = []
        async for event in again.receive():
            kinds.append(event["type"])
            if event["type"] == DONE:
                assert event["response"]["status"] == "completed"
                break
        assert SOUND in kinds
        await again.close()
