"""Sockets that become links: listening, connecting, the hello, and reconnecting after a loss."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable

from cantata.contract.data.errors import ConfigError
from cantata.distributed.address import Address
from cantata.distributed.key import LinkKey
from cantata.distributed.link.errors import LinkLost, ProtocolError, Refused
from cantata.distributed.link.frames import HEADER, HELLO, LINK, MAX_HELLO_BYTES, PROOF, pack_header
from cantata.distributed.link.hello import Hello, LinkSide
from cantata.distributed.link.tls import LinkSocket, start_tls, wait_until_ready

HELLO_S = 2.0
"""Limit for connecting and for the hello."""
_BACKLOG = 64
_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Before the next attempts to connect; the last one from then on."""
_SETTLED_S = 3.0
"""A link that is lost sooner counts as a failed attempt: its other end may be stopping."""
_REFUSED_PAUSE_S = 10.0
"""After a refusal or an unreadable message: an operator must change something first."""


def listen(address: Address) -> socket.socket:
    """A listening socket; port 0 takes a free port. Raises ConfigError: the address is taken,
    unknown or not this machine's."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        family, _, _, _, where = found[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ConfigError(f"cannot listen on {address}: {error.strerror}") from error
    return listener


def get_address(listener: socket.socket) -> Address:
    host, port = listener.getsockname()[:2]
    return Address(host, port)


async def connect(address: Address, key: LinkKey) -> LinkSocket:
    """A socket whose other end has shown that it has the key.

    Raises:
        LinkLost: nobody answers, or not in time, or the files for TLS cannot be read now.
        Refused: the other end has another key, version or authority.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(HELLO_S):
            found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
            family, _, _, _, where = found[0]
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setblocking(False)
            try:
                await loop.sock_connect(sock, where)
            except BaseException:
                sock.close()
                raise
            return await shake_hands(sock, LinkSide.CONNECTED, key)
    except TimeoutError:
        raise LinkLost(f"{address} did not answer within {HELLO_S:g} s") from None
    except LinkLost as error:
        raise type(error)(f"{address}: {error.reason}") from error
    except ConfigError as error:  # the files for TLS are just being renewed, say
        raise LinkLost(f"{address}: {error.message}") from error
    except ssl.SSLError as error:
        raise Refused(f"{address}: TLS failed: {error.reason or error}") from error
    except OSError as error:
        raise LinkLost(f"{address} cannot be reached: {error.strerror or error}") from error


async def shake_hands(sock: socket.socket, side: LinkSide, key: LinkKey) -> LinkSocket:
    """Exchange hellos, after TLS's if there is any; the caller limits the time. The end that
    accepted proves itself last: an end without the key learns nothing from it.

    Returns:
        The socket, or what encrypts it; after an error it is closed.

    Raises:
        ConfigError: the files for TLS cannot be read any more.
        Refused: the other end has another key or version, or is no end of a link.
        OSError: the connection broke, or the other end has no certificate (`ssl.SSLError`).
    """
    carrier: LinkSocket = sock
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if key.tls is not None:
            carrier = await start_tls(sock, key.tls, accepts=side is LinkSide.ACCEPTED)
        await _exchange_hellos(carrier, side, key)
    except BaseException:
        carrier.close()
        raise
    return carrier


async def _exchange_hellos(sock: LinkSocket, side: LinkSide, key: LinkKey) -> None:
    hello = Hello(side, key)
    await _send(sock, HELLO, hello.hello)
    proof = hello.prove(await _receive(sock, HELLO))
    if side is LinkSide.CONNECTED:
        await _send(sock, PROOF, proof)
        hello.check(await _receive(sock, PROOF))
    else:
        hello.check(await _receive(sock, PROOF))
        await _send(sock, PROOF, proof)


async def _send(sock: LinkSocket, kind: int, body: bytes) -> None:
    loop, frame = asyncio.get_running_loop(), pack_header(kind, LINK, len(body)) + body
    while frame:
        try:
            frame = frame[sock.sendmsg([frame]) :]
        except BlockingIOError:
            await wait_until_ready(sock, loop.add_writer, loop.remove_writer)


async def _receive(sock: LinkSocket, kind: int) -> bytes:
    """The body of the next frame, and not a byte of what follows it."""
    length, found, stream = HEADER.unpack(await _read(sock, HEADER.size))
    if (found, stream) != (kind, LINK) or length > MAX_HELLO_BYTES:
        raise Refused("the other end does not speak the protocol of links")
    return await _read(sock, length)


async def _read(sock: LinkSocket, size: int) -> bytes:
    loop, data = asyncio.get_running_loop(), bytearray(size)
    view = memoryview(data)
    while view:
        try:
            count = sock.recv_into(view)
        except BlockingIOError:
            await wait_until_ready(sock, loop.add_reader, loop.remove_reader)
            continue
        except ConnectionResetError:  # it has not read all that this end has sent
            count = 0
        if not count:
            raise Refused("the other end ended the hello; does it have the same key, and TLS?")
        view = view[count:]
    return bytes(data)


async def reconnect_forever(
    once: Callable[[], Awaitable[LinkLost]], on_loss: Callable[[LinkLost], None]
) -> None:
    """Until cancelled.

    Args:
        once: connects, and returns why the link was lost once it is; raises LinkLost if there is
            none.
        on_loss: called with that, before each new attempt.
    """
    failures = 0
    while True:
        began_s, settled = time.monotonic(), False
        try:
            error = await once()
            settled = time.monotonic() - began_s >= _SETTLED_S
        except LinkLost as refusal:
            error = refusal
        if settled:
            failures, pause_s = 0, _PAUSES_S[0]
        else:
            pause_s = _PAUSES_S[min(failures, len(_PAUSES_S) - 1)]
            failures += 1
        if isinstance(error, Refused | ProtocolError):
            pause_s = _REFUSED_PAUSE_S
        on_loss(error)
        await asyncio.sleep(pause_s)
