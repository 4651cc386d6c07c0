"""Several servers behind one port: they come and go, and every request is answered."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import psutil
import pytest
from fake_service import Behaviour, FakeService, eventually, expected_pcm
from live_server import Server, running
from server_process import server_process
from socket_client import client

from cantata.api.app import create_app
from cantata.api.connections import shared_port
from cantata.api.server.listening import bound, listen
from cantata.api.server.serve import make_server
from cantata.api.settings import ServerSettings
from cantata.audio.pcm import encode_s16le

TEXT = "A text that is under way."
PCM = encode_s16le(expected_pcm(TEXT, Behaviour()))
BODY = {"input": TEXT, "response_format": "pcm"}
SPEECH = "/v1/audio/speech"
MANY = 24
"""Connections. The kernel gives either of two servers some; all to one: once in 8 million times."""
NOBODY = 65534


class Started(AsyncExitStack):
    """A server behind a shared port; `aclose` stops it."""

    server: Server

    def __init__(self, port: int, service: FakeService | None = None) -> None:
        super().__init__()
        self._asked_port, self.service = port, service or FakeService()

    async def __aenter__(self) -> Started:
        await super().__aenter__()
        listener = bound("127.0.0.1", self._asked_port, shared=True)
        self.server = await self.enter_async_context(running(self.service, listener=listener))
        return self

    @property
    def port(self) -> int:
        return int(self.server.url.rpartition(":")[2])

    async def until_serving(self) -> None:
        await self.server.accepting.wait()
        await eventually(lambda: self.service.ready)

    @property
    def served(self) -> int:
        return len(self.service.solo.counts.requests)


async def ask(port: int) -> httpx.Response:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
        return await http.post(SPEECH, json=BODY)


def listening(port: int) -> int:
    """Sockets of this process that listen there."""
    sockets = psutil.Process().net_connections("tcp4")
    return sum(one.status == psutil.CONN_LISTEN and one.laddr.port == port for one in sockets)


@asynccontextmanager
async def listeners(port: int) -> AsyncIterator[list[httpx.Response]]:
    """Clients that ask all the time, over new connections and kept ones, and what they got."""
    answers: list[httpx.Response] = []
    over = asyncio.Event()

    async def listen(kept: httpx.AsyncClient | None) -> None:
        while not over.is_set():
            answers.append(await (kept.post(SPEECH, json=BODY) if kept else ask(port)))

    url = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=url, timeout=60) as kept, asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(listen(None))
            group.create_task(listen(kept))
        yield answers
        over.set()


async def test_every_request_is_answered_while_servers_are_replaced() -> None:
    async with AsyncExitStack() as stack:
        old = [await stack.enter_async_context(Started(0))]
        port = old[0].port
        await old[0].until_serving()
        old.append(await stack.enter_async_context(Started(port)))
        async with listeners(port) as answers:
            for _ in range(3):
                old.append(new := await stack.enter_async_context(Started(port)))
                await eventually(lambda new=new: new.served > 5)
                await old.pop(0).aclose()
        assert {(answer.status_code, answer.content) for answer in answers} == {(200, PCM)}


async def test_a_newcomer_takes_what_a_server_has_left() -> None:
    async with Started(0) as first, AsyncExitStack() as stack:
        port = first.port
        await first.until_serving()
        second = await stack.enter_async_context(Started(port))
        await second.until_serving()
        await first.aclose()
        assert listening(port) == 2
        third = await stack.enter_async_context(Started(port))
        await third.until_serving()
        assert {(await ask(port)).status_code for _ in range(MANY)} == {200}
        assert (min(second.served, third.served) > 0, listening(port)) == (True, 2)
        await second.aclose()
        await third.aclose()
        assert listening(port) == 0


async def test_what_was_accepted_before_is_served_after() -> None:
    """Its client cannot know that the server stops."""
    async with Started(0) as first:
        await first.until_serving()
        accepted = socket.create_connection(("127.0.0.1", first.port))
        await ask(first.port)
        async with Started(first.port) as second:
            await second.until_serving()
            first.server.stop()
            await eventually(lambda: first.server.app.state.context.drain.started)
            assert {(await ask(first.port)).status_code for _ in range(MANY)} == {200}
            assert (first.served, second.served) == (1, MANY)
            async with client(first.server.socket_url, sock=accepted) as late:
                await late.configure()
                await late.speak(TEXT)
                assert late.pcm == PCM
            assert first.served == 2


async def test_a_server_that_is_alone_rejects_what_comes_while_it_stops() -> None:
    service = FakeService()
    service.solo.behaviour.may_sound = asyncio.Event()
    async with Started(0, service) as alone:
        await alone.until_serving()
        under_way = asyncio.create_task(ask(alone.port))
        await eventually(lambda: service.solo.counts.open == 1)
        alone.server.stop()
        await eventually(lambda: alone.server.app.state.context.drain.rejects)
        assert (await ask(alone.port)).json()["error"]["code"] == "going_away"
        service.solo.behaviour.may_sound.set()
        assert (await under_way).content == PCM


async def test_a_server_gets_nothing_before_it_is_ready() -> None:
    service = FakeService()
    service.may_start.clear()
    async with Started(0) as first:
        await first.until_serving()
        async with Started(first.port, service) as second:
            for _ in range(MANY):
                assert (await ask(first.port)).status_code == 200
            assert (listening(first.port), second.served) == (1, 0)
            service.may_start.set()
            await second.until_serving()
            for _ in range(MANY):
                assert (await ask(first.port)).status_code == 200
            assert second.served > 0


async def test_a_server_that_hangs_delays_the_others_briefly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_port, "_ANSWER_S", 0.05)
    async with Started(0) as first:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as hangs:
            hangs.bind(f"\0cantata/port/127.0.0.1:{first.port}/0")
            hangs.listen()
            async with Started(first.port) as second:
                await second.until_serving()
                await first.aclose()
                assert listening(second.port) == 2


async def test_a_server_that_shares_nothing_may_be_quicker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Until one of them listens, both can bind."""
    ours = bound("127.0.0.1", 0, shared=True)
    with listen("127.0.0.1", ours.getsockname()[1]):
        async with asyncio.timeout(60):
            await make_server(create_app(FakeService(), ServerSettings())).serve(sockets=[ours])
    assert "another server has taken the port" in caplog.text


STRANGER = """
import socket, sys
door = socket.socket(socket.AF_UNIX)
door.bind("\\0" + sys.argv[1] + "0")
door.listen()
for line in open("/proc/net/unix"):
    if "@" + sys.argv[1] in line and not line.endswith("/0\\n"):
        visitor = socket.socket(socket.AF_UNIX)
        visitor.connect("\\0" + line.split()[-1][1:])
        try:
            socket.send_fds(visitor, [b"+"], [door.fileno()])
            given = visitor.recv(1)
        except OSError:
            given = b""
        print("given" if given else "refused", flush=True)
server, _ = door.accept()
message, descriptors, _, _ = socket.recv_fds(server, 1, 9)
print(len(descriptors), flush=True)
server.send(b"y")
"""


@pytest.mark.skipif(os.getuid() != 0, reason="starts a process of another user")
async def test_other_users_neither_get_nor_give_sockets() -> None:
    async with Started(0) as server:
        await server.until_serving()
        stranger = await asyncio.create_subprocess_exec(
            "/usr/bin/env", "python3", "-c", STRANGER, f"cantata/port/127.0.0.1:{server.port}/",
            user=NOBODY, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        assert stranger.stdout is not None
        try:
            async with asyncio.timeout(60):
                assert await stranger.stdout.readline() == b"refused\n"
                port = server.port
                await server.aclose()
                assert listening(port) == 0
                assert await stranger.stdout.read() == b"0\n"
        finally:
            if stranger.returncode is None:
                stranger.kill()
            await stranger.wait()


async def test_connections_that_nobody_has_accepted_move_to_another_server() -> None:
    """The kernel has set them up for a server that is stopped before it sees them."""
    async with server_process(port=0) as first:
        port = int(first.url.rpartition(":")[2])
        async with server_process(port=port) as second:
            first.let_sound()
            second.let_sound()
            first.process.send_signal(signal.SIGSTOP)
            asked = [asyncio.create_task(ask(port)) for _ in range(MANY)]
            await asyncio.wait(asked, timeout=1, return_when=asyncio.FIRST_COMPLETED)
            first.process.send_signal(signal.SIGTERM)
            first.process.send_signal(signal.SIGCONT)
            answers = await asyncio.gather(*asked)
            assert {(answer.status_code, answer.content) for answer in answers} == {(200, PCM)}
            status, log = await first.ended()
            assert (status, b"Traceback" in log) == (-signal.SIGTERM, False)
