"""Links over TLS: what crosses cannot be read, and only the cluster's own ends connect."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
from fake_cluster import fake_cluster, spoken

from cantata.contract.data.errors import ConfigError
from cantata.distributed.address import Address
from cantata.distributed.key import LinkKey, read_key
from cantata.distributed.link.connecting import connect, get_address, listen, shake_hands
from cantata.distributed.link.errors import LinkLost, Refused
from cantata.distributed.link.frames import FIRST_OF_USER
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.link import Link
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.link.tls import TLS_VARIABLE, LinkSocket, LinkTls, wait_until_ready

SECRET = b"a key of thirty-two bytes, about"
DATA = FIRST_OF_USER
BODY = bytes(range(256)) * 12_000
"""3 MB: many windows of credit, and more than the kernel holds."""
PLAIN = LinkKey(SECRET)


def write_files(folder: Path, authority: trustme.CA, trusted: trustme.CA | None = None) -> LinkKey:
    folder.mkdir()
    certificate = authority.issue_cert("end.cluster.example")
    certificate.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    certificate.private_key_pem.write_to_path(folder / "tls.key")
    (trusted or authority).cert_pem.write_to_path(folder / "ca.crt")
    return LinkKey(SECRET, LinkTls(folder))


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def key(authority: trustme.CA, tmp_path: Path) -> LinkKey:
    return write_files(tmp_path / "end", authority)


@pytest.fixture
def heartbeat() -> Iterator[Heartbeat]:
    """So fast that its thread writes among everything else."""
    heartbeat = Heartbeat(0.001)
    yield heartbeat
    heartbeat.close()


async def meet(near: LinkKey, far: LinkKey) -> tuple[LinkSocket, LinkSocket]:
    with listen(Address("127.0.0.1", 0)) as listener:
        connecting = asyncio.create_task(connect(get_address(listener), near))
        sock, _ = await asyncio.get_running_loop().sock_accept(listener)
        accepted, connected = await asyncio.gather(
            shake_hands(sock, LinkSide.ACCEPTED, far), connecting, return_exceptions=True
        )
    problems = [one for one in (connected, accepted) if isinstance(one, Exception)]
    for one in (connected, accepted):
        if problems and not isinstance(one, BaseException):
            one.close()
    if problems:
        raise ExceptionGroup("they did not meet", problems)
    return connected, accepted  # type: ignore[return-value]


@asynccontextmanager
async def linked(
    key: LinkKey, heartbeat: Heartbeat
) -> AsyncIterator[tuple[Link, list[LinkStream]]]:
    near, far = await meet(key, key)
    streams: list[LinkStream] = []
    ends = (
        Link(near, LinkSide.CONNECTED, heartbeat, "far"),
        Link(far, LinkSide.ACCEPTED, heartbeat, "near", on_stream=streams.append),
    )
    for end in ends:
        end.begin()
    yield ends[0], streams
    for end in ends:
        end.close()


async def echo(stream: LinkStream) -> None:
    while (frame := await stream.receive()) is not None:
        await stream.send(DATA, bytes(frame.body))
    stream.end()


async def test_bytes_arrive_as_they_were_both_ways(key: LinkKey, heartbeat: Heartbeat) -> None:
    async with asyncio.timeout(60), linked(key, heartbeat) as (link, streams):
        stream = link.open()
        stream.post(DATA, b"open")
        while not streams:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        echoing = asyncio.create_task(echo(streams[0]))
        assert (await stream.receive()).body == b"open"  # type: ignore[union-attr]

        async def send() -> None:
            for start in range(0, len(BODY), 100_000):
                await stream.send(DATA, BODY[start : start + 100_000])

        sending, back = asyncio.create_task(send()), b""
        while len(back) < len(BODY):
            back += (await stream.receive()).body  # type: ignore[union-attr]
        stream.end()
        await asyncio.gather(sending, echoing)
        assert back == BODY
        assert not link.is_lost


async def test_what_crosses_cannot_be_read(key: LinkKey) -> None:
    """A relay between the ends sees neither the hello nor what follows it."""
    seen = {}
    for end in (PLAIN, key):
        crossed = await relay_one_message(end, b"the words of a listener")
        seen[end] = (b"CnTaLink" in crossed, b"the words of a listener" in crossed)
    assert seen == {PLAIN: (True, True), key: (False, False)}


async def relay_one_message(key: LinkKey, message: bytes) -> bytes:
    """All that a relay sees until the message has arrived."""
    crossed = bytearray()
    loop = asyncio.get_running_loop()
    with listen(Address("127.0.0.1", 0)) as target, listen(Address("127.0.0.1", 0)) as relay:
        connecting = asyncio.create_task(connect(get_address(relay), key))
        client, _ = await loop.sock_accept(relay)
        server = socket.create_connection(target.getsockname())
        server.setblocking(False)
        accepted, _ = await loop.sock_accept(target)
        pumps = [
            asyncio.create_task(pump(*pair, crossed))
            for pair in ((client, server), (server, client))
        ]
        far = await shake_hands(accepted, LinkSide.ACCEPTED, key)
        near = await connecting
        near.sendmsg([message])
        assert await receive_some(far) == message
        for task in pumps:
            task.cancel()
        await asyncio.wait(pumps)
    for sock in (near, far, client, server):
        sock.close()
    return bytes(crossed)


async def pump(source: socket.socket, target: socket.socket, crossed: bytearray) -> None:
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(source, 1 << 16):
        crossed += data
        await loop.sock_sendall(target, data)


async def receive_some(sock: LinkSocket) -> bytes:
    loop, data = asyncio.get_running_loop(), bytearray(1 << 16)
    while True:
        try:
            return bytes(data[: sock.recv_into(memoryview(data))])
        except BlockingIOError:
            await wait_until_ready(sock, loop.add_reader, loop.remove_reader)


async def test_an_end_of_another_authority_is_refused(
    key: LinkKey, authority: trustme.CA, tmp_path: Path
) -> None:
    stranger = write_files(tmp_path / "stranger", trustme.CA(), trusted=authority)
    for near, far in ((stranger, key), (key, stranger)):
        with pytest.RaisesGroup(Refused, ssl.SSLError):
            await meet(near, far)


@pytest.mark.parametrize("near_has_it", [True, False])
async def test_an_end_without_tls_is_refused(key: LinkKey, *, near_has_it: bool) -> None:
    near, far = (key, PLAIN) if near_has_it else (PLAIN, key)
    with pytest.raises(ExceptionGroup) as caught:
        await meet(near, far)
    connecting = caught.value.exceptions[0]
    assert isinstance(connecting, Refused)
    assert ("TLS failed" if near_has_it else "same key, and TLS?") in connecting.reason


async def test_another_key_is_refused_within_tls(key: LinkKey) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await meet(LinkKey(bytes(16), key.tls), key)
    assert all(isinstance(one, Refused) for one in caught.value.exceptions)


async def test_renewed_files_take_effect_by_themselves(key: LinkKey, tmp_path: Path) -> None:
    renewed = trustme.CA()
    write_files(tmp_path / "renewed", renewed)
    assert key.tls is not None
    for file in (tmp_path / "renewed").iterdir():
        (key.tls.folder / file.name).write_bytes(file.read_bytes())
    for end in await meet(key, key):
        end.close()


async def test_files_that_are_being_renewed_are_tried_again(key: LinkKey) -> None:
    """Whoever keeps an edge connected takes a lost link for a reason to try again."""
    assert key.tls is not None
    certificate = key.tls.folder / "tls.crt"
    whole = certificate.read_bytes()
    certificate.write_bytes(b"half of it")
    with listen(Address("127.0.0.1", 0)) as listener, pytest.raises(LinkLost, match=r"tls\.crt"):
        await connect(get_address(listener), key)
    certificate.write_bytes(whole)
    for end in await meet(key, key):
        end.close()


async def test_replicas_speak_over_tls(key: LinkKey) -> None:
    async with fake_cluster(2, key=key) as cluster, fake_cluster(1) as plain:
        texts = [f"This is text {number}." for number in range(8)]
        heard = await asyncio.gather(*(spoken(cluster, text) for text in texts))
        assert heard == [await spoken(plain, text) for text in texts]


def test_the_environment_names_the_folder(key: LinkKey, monkeypatch: pytest.MonkeyPatch) -> None:
    assert key.tls is not None
    monkeypatch.setenv("CANTATA_CLUSTER_KEY", SECRET.decode())
    monkeypatch.setenv(TLS_VARIABLE, str(key.tls.folder))
    assert read_key(None) == key
    monkeypatch.delenv("CANTATA_CLUSTER_KEY")
    assert read_key(None) == LinkKey(b"", key.tls)


@pytest.mark.parametrize("missing", ["tls.crt", "tls.key", "ca.crt"])
def test_a_missing_file_is_named(
    key: LinkKey, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    assert key.tls is not None
    monkeypatch.setenv(TLS_VARIABLE, str(key.tls.folder))
    (key.tls.folder / missing).unlink()
    with pytest.raises(ConfigError, match=r"tls\.crt, tls\.key and ca\.crt"):
        read_key(None)


def test_a_key_of_another_certificate_is_an_error(
    key: LinkKey, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert key.tls is not None
    write_files(tmp_path / "other", authority)
    (key.tls.folder / "tls.key").write_bytes((tmp_path / "other" / "tls.key").read_bytes())
    monkeypatch.setenv(TLS_VARIABLE, str(key.tls.folder))
    with pytest.raises(ConfigError, match="belong together"):
        read_key(None)
