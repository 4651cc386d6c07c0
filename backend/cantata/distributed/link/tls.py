"""TLS 1.3 (RFC 8446) between the ends of a link: each shows a certificate of the cluster's own
authority, and trusts no other."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

from cantata.contract.data.errors import ConfigError
from cantata.ipc.wire import Buffer

TLS_VARIABLE = "CANTATA_CLUSTER_TLS"
_RECORD_BYTES = 16 << 10
"""The most that one record holds."""
_BUFFERS_AT_ONCE = 32
"""Joined for one write: a retry must begin with the same bytes, and not be shorter."""


class LinkSocket(Protocol):
    """What a link needs of a connected, non-blocking socket."""

    def fileno(self) -> int: ...

    def recv_into(self, buffer: memoryview, /) -> int:
        """Raises BlockingIOError if nothing has arrived; 0: the other end has closed."""
        ...

    def sendmsg(self, buffers: Sequence[Buffer], /) -> int:
        """Bytes that were taken. Raises BlockingIOError if there is no room."""
        ...

    def shutdown(self, how: int, /) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LinkTls:
    """One end's certificate, its key and the authority, in files that are named as in a Kubernetes
    TLS secret. They are read for each connection, so renewed ones take effect by themselves."""

    folder: Path

    def make_context(self, *, accepts: bool) -> ssl.SSLContext:
        """The TLS context for one end of a connection.

        Args:
            accepts: it is the end that accepts.

        Raises:
            ConfigError: a file is missing or does not fit the others.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if accepts else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        # Only the cluster's ends have such certificates, and their addresses change.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_cert_chain(self.folder / "tls.crt", self.folder / "tls.key")
            context.load_verify_locations(self.folder / "ca.crt")
        except OSError as error:  # ssl.SSLError is one
            raise ConfigError(
                f"{self.folder}: a link's TLS needs tls.crt, tls.key and ca.crt that belong"
                f" together ({error.strerror or error})"
            ) from error
        return context


def read_tls(environment: Mapping[str, str] = os.environ) -> LinkTls | None:
    """The files that the environment names; None: links are not encrypted. Raises ConfigError: as
    of `LinkTls.make_context`."""
    folder = environment.get(TLS_VARIABLE, "").strip()
    if not folder:
        return None
    tls = LinkTls(Path(folder))
    tls.make_context(accepts=True)
    return tls


class TlsSocket:
    """Implements `LinkSocket`. The loop reads and writes and the heartbeat's thread writes, of
    which OpenSSL allows one at a time. `sock`: after its handshake, non-blocking."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._socket = sock
        self._lock = threading.Lock()

    def fileno(self) -> int:
        return self._socket.fileno()

    def recv_into(self, buffer: memoryview, /) -> int:
        """While there is room for a whole record: the rest of one would stay in OpenSSL, where it
        does not make the socket readable."""
        size = 0
        with self._lock:
            while not size or len(buffer) - size >= _RECORD_BYTES:
                try:
                    count = self._socket.recv_into(buffer[size:])
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    if not size:
                        raise BlockingIOError from None
                    break
                if not count:
                    break
                size += count
        return size

    def sendmsg(self, buffers: Sequence[Buffer], /) -> int:
        """Of some of the buffers, in order."""
        data = b"".join(islice(buffers, _BUFFERS_AT_ONCE))
        with self._lock:
            try:
                return self._socket.send(data)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise BlockingIOError from None

    def shutdown(self, how: int, /) -> None:
        """Of TCP alone: `SSLSocket.shutdown` would read what follows as plain text."""
        socket.socket.shutdown(self._socket, how)

    def close(self) -> None:
        self._socket.close()


async def start_tls(sock: socket.socket, tls: LinkTls, *, accepts: bool) -> TlsSocket:
    """Do the handshake; the caller limits the time. `sock` is taken over, also by an error.

    Raises:
        ConfigError: as of `LinkTls.make_context`.
        OSError: the other end has no certificate of the authority (`ssl.SSLError`), or has closed.
    """
    try:
        context = tls.make_context(accepts=accepts)
        wrapped = context.wrap_socket(sock, server_side=accepts, do_handshake_on_connect=False)
    except BaseException:
        sock.close()
        raise
    loop = asyncio.get_running_loop()
    try:
        while True:
            try:
                wrapped.do_handshake()
                return TlsSocket(wrapped)
            except ssl.SSLWantReadError:
                await wait_until_ready(wrapped, loop.add_reader, loop.remove_reader)
            except ssl.SSLWantWriteError:
                await wait_until_ready(wrapped, loop.add_writer, loop.remove_writer)
    except BaseException:
        wrapped.close()
        raise


async def wait_until_ready(
    sock: LinkSocket | ssl.SSLSocket,
    add: Callable[[int, Callable[[], None]], None],
    remove: Callable[[int], bool],
) -> None:
    """Wait until a socket can be read, or written. `add`: the loop's `add_reader` or
    `add_writer`."""
    ready = asyncio.Event()
    add(sock.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        remove(sock.fileno())
