"""Both ends of a link over a pair of sockets: streams, credit, beats, and how it dies."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from cantata.distributed.address import Address
from cantata.distributed.key import NO_KEY, LinkKey
from cantata.distributed.link import link as link_module
from cantata.distributed.link.connecting import connect, get_address, listen, shake_hands
from cantata.distributed.link.errors import (
    ConnectionClosed,
    HeartbeatTimeout,
    LinkLost,
    PeerHung,
    ProtocolError,
    Refused,
)
from cantata.distributed.link.frames import BEAT, CREDIT, END, FIRST_OF_USER, HEADER, pack_header
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.link import Link
from cantata.distributed.link.stream import WINDOW_BYTES, LinkStream

DATA = FIRST_OF_USER
KEY = LinkKey(b"a key of thirty-two bytes, about")


@dataclass
class End:
    """One end, and what arrived there."""

    sock: socket.socket
    streams: list[LinkStream] = field(default_factory=list)
    messages: list[tuple[int, bytes]] = field(default_factory=list)
    states: list[bytes] = field(default_factory=list)
    link: Link = field(init=False)

    def begin(self, side: LinkSide, heartbeat: Heartbeat) -> None:
        self.link = Link(
            self.sock,
            side,
            heartbeat,
            side.name,
            on_stream=self.streams.append if side is LinkSide.ACCEPTED else None,
            on_message=lambda kind, body: self.messages.append((kind, bytes(body))),
            on_state=lambda body: self.states.append(bytes(body)),
        )
        self.link.begin()


@pytest.fixture
def heartbeat() -> Iterator[Heartbeat]:
    heartbeat = Heartbeat(0.02)
    yield heartbeat
    heartbeat.close()


@asynccontextmanager
async def two_ends(heartbeat: Heartbeat) -> AsyncIterator[tuple[End, End]]:
    near, far = (End(sock) for sock in socket.socketpair())
    for end, side in ((near, LinkSide.CONNECTED), (far, LinkSide.ACCEPTED)):
        end.sock.setblocking(False)
        end.begin(side, heartbeat)
    yield near, far
    near.link.close()
    far.link.close()


@asynccontextmanager
async def raw_end(
    heartbeat: Heartbeat, side: LinkSide = LinkSide.ACCEPTED
) -> AsyncIterator[tuple[End, socket.socket]]:
    """One end, and the plain socket at the other."""
    mine, theirs = socket.socketpair()
    end = End(mine)
    mine.setblocking(False)
    end.begin(side, heartbeat)
    with theirs:
        yield end, theirs
        end.link.close()


async def until(condition: object) -> None:
    async with asyncio.timeout(60):
        while not condition():  # type: ignore[operator]  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def opened(near: End, far: End, body: bytes = b"open") -> tuple[LinkStream, LinkStream]:
    stream, before = near.link.open(), len(far.streams)
    stream.post(DATA, body)
    await until(lambda: len(far.streams) > before)
    frame = await far.streams[-1].receive()
    assert frame is not None
    assert bytes(frame.body) == body
    return stream, far.streams[-1]


async def test_streams_carry_frames_both_ways_in_order(heartbeat: Heartbeat) -> None:
    async with two_ends(heartbeat) as (near, far):
        one, other = await opened(near, far)
        for number in range(50):
            await one.send(DATA + 1, b"up", str(number).encode())
            await other.send(DATA + 2, str(number).encode())
        for number in range(50):
            up, down = await other.receive(), await one.receive()
            assert up is not None
            assert down is not None
            assert (up.kind, bytes(up.body)) == (DATA + 1, f"up{number}".encode())
            assert (down.kind, bytes(down.body)) == (DATA + 2, str(number).encode())
        one.end()
        other.end(b"why")
        assert await other.receive() is None
        last = await one.receive()
        assert last is not None
        assert (last.kind, bytes(last.body)) == (END, b"why")
        await until(lambda: not near.link.streams and not far.link.streams)


class Counting(socket.socket):
    """A socket that counts what is handed to the kernel."""

    calls = 0

    def sendmsg(self, *args: object) -> int:
        self.calls += 1
        return super().sendmsg(*args)  # type: ignore[arg-type]


async def test_what_many_streams_send_at_once_leaves_together() -> None:
    """A step's chunks are one system call here, and one turn of the loop there."""
    near, far = socket.socketpair()
    counting = Counting(near.family, near.type, near.proto, near.detach())
    silent = Heartbeat(3600)
    ends = End(counting), End(far)
    for end, side in zip(ends, (LinkSide.CONNECTED, LinkSide.ACCEPTED), strict=True):
        end.sock.setblocking(False)
        end.begin(side, silent)
    streams = [ends[0].link.open() for _ in range(16)]
    sound = bytes(7_680)
    for stream in streams:
        stream.post(DATA, b"open")
    before = counting.calls
    await asyncio.gather(*(stream.send(DATA + 1, b"head", sound) for stream in streams))
    await until(lambda: len(ends[1].streams) == 16)
    assert counting.calls - before == 2  # those that open, those that follow
    for stream in ends[1].streams:
        first, second = await stream.receive(), await stream.receive()
        assert first is not None
        assert second is not None
        assert (bytes(first.body), bytes(second.body)) == (b"open", b"head" + sound)
    for end in ends:
        end.link.close()
    silent.close()


async def test_what_was_sent_before_an_end_arrives(heartbeat: Heartbeat) -> None:
    async with two_ends(heartbeat) as (near, far):
        stream, other = await opened(near, far)
        await stream.send(DATA, b"last words")
        near.link.close()
        last = await other.receive()
        assert last is not None
        assert bytes(last.body) == b"last words"
        with pytest.raises(LinkLost):
            await other.receive()


async def test_a_large_body_arrives_whole_while_others_go_on(heartbeat: Heartbeat) -> None:
    body = bytes(range(256)) * 40_000  # ten megabytes: far more than the kernel holds
    async with two_ends(heartbeat) as (near, far):
        small, _ = await opened(near, far)
        large = near.link.open()
        large.post(DATA, body)
        other = far.streams[0]
        await small.send(DATA, b"after it")
        frame = await other.receive()
        assert frame is not None
        assert bytes(frame.body) == b"after it"
        arrived = await far.streams[1].receive()
        assert arrived is not None
        assert arrived.body == body


async def test_a_sender_waits_for_credit_and_others_do_not(heartbeat: Heartbeat) -> None:
    part = bytes(WINDOW_BYTES // 8)
    async with two_ends(heartbeat) as (near, far):
        slow, unread = await opened(near, far)
        sent = 0

        async def fill() -> None:
            nonlocal sent
            while True:
                await slow.send(DATA, part)
                sent += 1

        filling = asyncio.create_task(fill())
        quick, read = await opened(near, far, b"second")
        for _ in range(100):
            await quick.send(DATA, part)
            assert await read.receive() is not None
        assert sent == 8
        for _ in range(20):
            assert await unread.receive() is not None
        assert sent >= 20
        filling.cancel()


async def test_a_sender_goes_on_once_the_kernel_has_taken_everything(
    heartbeat: Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, so that it never reports that it has room; and no credit comes, since nobody
    reads."""
    monkeypatch.setattr(link_module, "ROOM_BYTES", 1000)
    async with two_ends(heartbeat) as (near, far):
        stream, _ = await opened(near, far)
        async with asyncio.timeout(60):
            for _ in range(3):
                await stream.send(DATA, bytes(2000))


async def test_who_waits_for_credit_is_let_go_when_its_own_end_ends(heartbeat: Heartbeat) -> None:
    """Nobody returns credit after that; both ends forget the stream."""
    async with two_ends(heartbeat) as (near, far):
        stream, other = await opened(near, far)
        await stream.send(DATA, bytes(WINDOW_BYTES))
        waiting = asyncio.create_task(stream.send(DATA, b"too late"))
        await until(lambda: other.arrived_bytes > WINDOW_BYTES)
        assert not waiting.done()
        other.end()
        await stream.wait_until_ended()
        stream.end()
        async with asyncio.timeout(60):
            await waiting
        first = await other.receive()
        assert first is not None
        assert len(first.body) == WINDOW_BYTES
        assert await other.receive() is None


async def test_the_window_bounds_what_waits_for_a_reader(heartbeat: Heartbeat) -> None:
    async with raw_end(heartbeat) as (end, theirs):
        frame = pack_header(DATA, 1, WINDOW_BYTES // 2) + bytes(WINDOW_BYTES // 2)
        await asyncio.to_thread(theirs.sendall, frame * 3)
        error = await end.link.wait_until_lost()
        assert isinstance(error, ProtocolError)
        assert "credit" in error.reason


BEATS_THAT_LIE = pack_header(BEAT, 0, 4) + b"\x42\x48\x00\x00"  # fifty seconds, as a float


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"GET / HTTP/1.1\r\nhost: here\r\n\r\n" * 9, ProtocolError),
        (pack_header(DATA, 1, 1 << 31), ProtocolError),
        (pack_header(99, 0, 0), LinkLost),
        (pack_header(CREDIT, 5, 4) + bytes(4), ProtocolError),
        (pack_header(END, 5, 0), ProtocolError),
        (pack_header(BEAT, 0, 3) + bytes(3), ProtocolError),
        (pack_header(DATA, 1, 0) + pack_header(7, 1, 0), ProtocolError),
        (pack_header(DATA, 1, 0) + pack_header(CREDIT, 1, 4) + b"\xff" * 4, ProtocolError),
        (pack_header(DATA, 1, 0) + pack_header(END, 1, 0) + pack_header(DATA, 1, 0), ProtocolError),
        (BEATS_THAT_LIE, PeerHung),
        (b"", ConnectionClosed),
    ],
)
async def test_garbage_is_the_links_death_with_a_reason(
    heartbeat: Heartbeat, data: bytes, kind: type[LinkLost]
) -> None:
    async with raw_end(heartbeat) as (end, theirs):
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(60):
            error = await end.link.wait_until_lost()
        assert isinstance(error, kind)
        assert error.reason
        for stream in end.streams:
            await stream.wait_until_ended()
            with pytest.raises(LinkLost):
                await stream.send(DATA, b"x")


async def test_what_arrived_before_the_loss_is_still_read(heartbeat: Heartbeat) -> None:
    async with two_ends(heartbeat) as (near, far):
        one, other = await opened(near, far)
        await other.send(DATA, b"first")
        await other.send(DATA, b"second")
        await until(lambda: one.arrived_bytes == 2 * HEADER.size + len(b"firstsecond"))
        far.link.close()
        await near.link.wait_until_lost()
        frames = [await one.receive(), await one.receive()]
        assert [bytes(frame.body) for frame in frames if frame] == [b"first", b"second"]
        with pytest.raises(LinkLost):
            await one.receive()


async def test_a_frame_that_crosses_an_end_is_dropped(heartbeat: Heartbeat) -> None:
    async with two_ends(heartbeat) as (near, far):
        one, other = await opened(near, far)
        one.end()
        other.end()
        await until(lambda: not near.link.streams and not far.link.streams)
        far.link.put(DATA, one.number, (b"late",))
        await opened(near, far, b"another")
        assert not near.link.is_lost


async def test_beats_carry_the_state_while_the_loop_stands_still(heartbeat: Heartbeat) -> None:
    async with raw_end(heartbeat) as (end, theirs):
        end.link.set_state(b"state")
        theirs.settimeout(60)
        await asyncio.to_thread(theirs.recv, 1 << 16)
        frame = pack_header(BEAT, 0, 4 + len(b"state"))
        heard = bytearray()

        def listen_for_beats() -> None:
            while heard.count(frame) < 4:
                heard.extend(theirs.recv(1 << 16))

        listening = threading.Thread(target=listen_for_beats)
        listening.start()
        listening.join(60)  # holds the loop up
        assert heard.count(frame) >= 4
        assert heard.count(b"state") >= 4


async def test_a_silent_end_is_found_out(heartbeat: Heartbeat) -> None:
    """By the rule that `test_heartbeat_monitor.py` checks; here, that the link applies it."""
    async with raw_end(heartbeat) as (end, _):
        began = time.monotonic()
        async with asyncio.timeout(60):
            error = await end.link.wait_until_lost()
        assert isinstance(error, HeartbeatTimeout)
        assert time.monotonic() - began > 1.0


async def test_beats_alone_keep_a_link(heartbeat: Heartbeat) -> None:
    async with two_ends(heartbeat) as (near, far):
        await asyncio.sleep(0)
        for _ in range(3):
            near.states.clear()
            far.link.set_state(b"x", now=True)
            await until(lambda: len(near.states) > 2)
        assert not near.link.is_lost
        assert not far.link.is_lost


async def test_an_end_that_reads_nothing_holds_up_no_loop(
    heartbeat: Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "ROOM_BYTES", 64 << 10)
    async with raw_end(heartbeat, LinkSide.CONNECTED) as (end, _):
        streams = [end.link.open() for _ in range(20)]
        sending = [asyncio.create_task(stream.send(DATA, bytes(60_000))) for stream in streams]
        await asyncio.sleep(0.1)
        waiting = [task for task in sending if not task.done()]
        assert len(waiting) > 5
        for task in sending:
            task.cancel()


async def test_who_finishes_lets_the_other_end_read_everything(heartbeat: Heartbeat) -> None:
    body = bytes(range(256)) * 20_000  # more than the kernel holds
    async with two_ends(heartbeat) as (near, far):
        one, other = await opened(near, far)
        other.post(DATA, body)
        other.end(b"the end")
        one.post(DATA, b"never read")
        await far.link.finish(30)
        arrived, last = await one.receive(), await one.receive()
        assert arrived is not None
        assert last is not None
        assert (bytes(arrived.body), bytes(last.body)) == (body, b"the end")
        assert far.link.is_lost


async def test_who_is_never_read_finishes_in_time(heartbeat: Heartbeat) -> None:
    async with raw_end(heartbeat) as (end, theirs):
        theirs.sendall(pack_header(DATA, 1, 0))
        await until(lambda: end.streams)
        end.streams[0].post(DATA, bytes(5_000_000))
        await end.link.finish(0.05)
        assert end.link.is_lost


@pytest.mark.parametrize("key", [KEY, NO_KEY])
async def test_ends_find_each_other_over_tcp(key: LinkKey) -> None:
    with listen(Address("127.0.0.1", 0)) as listener:
        loop = asyncio.get_running_loop()
        connecting = asyncio.create_task(connect(get_address(listener), key))
        sock, _ = await loop.sock_accept(listener)
        assert await shake_hands(sock, LinkSide.ACCEPTED, key) is sock
        with sock, await connecting as near:  # type: ignore[attr-defined]
            assert near.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_another_key_is_refused_on_both_sides() -> None:
    with listen(Address("127.0.0.1", 0)) as listener:
        loop = asyncio.get_running_loop()
        connecting = asyncio.create_task(connect(get_address(listener), LinkKey(bytes(16))))
        sock, _ = await loop.sock_accept(listener)
        with sock, pytest.raises(Refused):
            await shake_hands(sock, LinkSide.ACCEPTED, KEY)
        with pytest.raises(Refused, match="same key"):
            await connecting


async def test_nobody_there_is_said_with_the_address() -> None:
    with listen(Address("127.0.0.1", 0)) as listener:
        address = get_address(listener)
    with pytest.raises(LinkLost, match=str(address)):
        await connect(address, KEY)


async def test_who_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cantata.distributed.link.connecting.HELLO_S", 0.1)
    with listen(Address("127.0.0.1", 0)) as listener, pytest.raises(LinkLost, match="within"):
        await connect(get_address(listener), KEY)
