"""TLS in front of the server, as with a reverse proxy."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import trustme


@asynccontextmanager
async def serve_tls_proxy(url: str, authority: Path) -> AsyncIterator[str]:
    """An https address on this machine that leads to an http one.

    Args:
        url: of the server.
        authority: file that takes the certificate by which the address can be trusted.
    """
    server = urlsplit(url)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(server.hostname, server.port)
        async with asyncio.TaskGroup() as group:
            group.create_task(_pump(reader, inner_writer))
            group.create_task(_pump(inner_reader, writer))

    maker = trustme.CA()
    maker.cert_pem.write_to_path(str(authority))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    maker.issue_cert("127.0.0.1").configure_cert(context)
    async with await asyncio.start_server(pass_on, "127.0.0.1", 0, ssl=context) as proxy:
        yield f"https://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()
