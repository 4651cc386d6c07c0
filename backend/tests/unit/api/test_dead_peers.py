"""Clients that vanish lose their places; clients that only read slowly do not."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_service import FakeService, eventually, expected_pcm
from live_server import running

from cantata.api.server.listening import BACKLOG, bind
from cantata.api.settings import ConnectionSettings, ServerSettings
from cantata.audio.pcm import encode_s16le

TEXT = "x" * 200
REQUEST = (
    b"POST /v1/audio/speech HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s"
)
BODY = b'{"input": "' + TEXT.encode() + b'", "response_format": "pcm"}'
SERVER_ADDRESS, CLIENT_ADDRESS = "10.77.0.1", "10.77.0.2"
_CLONE_NEWNET = 0x40000000


class Cable:
    """Two network namespaces, of a server and of its clients, and the cable between them."""

    def __init__(self, tag: str) -> None:
        self.server, self.clients = f"cantata-s-{tag}", f"cantata-c-{tag}"

    def plug(self) -> None:
        for space in (self.server, self.clients):
            self._ip("netns", "add", space)
            self._ip("-n", space, "link", "set", "lo", "up")
        peer = ("peer", "name", "cable1", "netns", self.clients)
        self._ip("-n", self.server, "link", "add", "cable0", "type", "veth", *peer)
        ends = ((self.server, "cable0", SERVER_ADDRESS), (self.clients, "cable1", CLIENT_ADDRESS))
        for space, end, address in ends:
            self._ip("-n", space, "addr", "add", f"{address}/24", "dev", end)
            self._ip("-n", space, "link", "set", end, "up")

    def pull(self) -> None:
        self._ip("-n", self.clients, "link", "set", "cable1", "down")

    def remove(self) -> None:
        for space in (self.server, self.clients):
            with contextlib.suppress(subprocess.CalledProcessError):
                self._ip("netns", "del", space)

    def socket(self, space: str) -> socket.socket:
        """A TCP socket in a namespace, for use from any thread."""

        def make() -> socket.socket:
            with Path(f"/var/run/netns/{space}").open() as handle:
                if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            return socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(make).result()

    def _ip(self, *words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def cable() -> Iterator[Cable]:
    if os.geteuid() or shutil.which("ip") is None:
        pytest.skip("needs root and the command ip, for network namespaces")
    made = Cable(str(os.getpid()))
    try:
        made.plug()
        made.socket(made.server).close()
    except (subprocess.CalledProcessError, OSError) as error:
        made.remove()
        pytest.skip(f"no network namespaces here: {error}")
    yield made
    made.remove()


def limits(unanswered_s: float) -> ServerSettings:
    return ServerSettings(connections=ConnectionSettings(unanswered_s=unanswered_s))


async def asked(connection: socket.socket, address: tuple[str, int]) -> None:
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, address)
    await loop.sock_sendall(connection, REQUEST % (len(BODY), BODY))


async def test_a_pulled_cable_frees_the_place(cable: Cable) -> None:
    service = FakeService()
    how = service.solo.behaviour
    how.chunk_samples = 4800  # in total more than any buffer holds
    listener = cable.socket(cable.server)
    bind(listener, (SERVER_ADDRESS, 0))
    listener.listen(BACKLOG)
    async with running(service, limits(1.0), listener=listener):
        port = listener.getsockname()[1]
        await eventually(lambda: service.ready)
        remote, near = cable.socket(cable.clients), cable.socket(cable.server)
        with remote, near:
            await asked(remote, (SERVER_ADDRESS, port))
            loop = asyncio.get_running_loop()
            assert await loop.sock_recv(remote, 100)
            cable.pull()
            # The server's side of the cable notices nothing.
            await asked(near, (SERVER_ADDRESS, port))
            heard = b""
            while more := await loop.sock_recv(near, 1 << 16):
                heard += more
            assert b"HTTP/1.1 200 " in heard
            assert encode_s16le(expected_pcm(TEXT, how))[-1000:] in heard
            await eventually(lambda: service.solo.counts.open == 0)
        counts = service.solo.counts
        assert (counts.started, counts.finished, counts.aborted) == (2, 1, 1)


async def test_a_client_that_stops_reading_is_not_dead() -> None:
    service = FakeService()
    service.solo.behaviour.chunk_samples = 4800
    async with running(service, limits(0.3), small_buffers=True) as server:
        await eventually(lambda: service.ready)
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            host, port = server.url.removeprefix("http://").split(":")
            await asked(slow, (host, int(port)))
            await eventually(lambda: service.solo.counts.open == 1)
            await asyncio.sleep(1.5)
            assert service.solo.counts.open == 1
            loop, heard = asyncio.get_running_loop(), b""
            while more := await loop.sock_recv(slow, 1 << 20):
                heard += more
    expected = encode_s16le(expected_pcm(TEXT, service.solo.behaviour))
    # In chunks of HTTP, so that the pieces of the sound are apart.
    assert len(heard) > len(expected)
    assert expected[-1000:] in heard
