"""The listening socket."""

from __future__ import annotations

import asyncio
from socket import IPPROTO_TCP, TCP_NODELAY

from cantata.api.server.listening import listen


async def test_a_packet_does_not_wait_for_the_one_before_it_to_be_acknowledged() -> None:
    """Else the first sound behind a response's head, and every later packet, is 40 ms late."""
    accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    listener = listen("127.0.0.1", 0)
    server = await asyncio.start_server(
        lambda _, writer: accepted.put_nowait(writer), sock=listener
    )
    async with server:
        _, client = await asyncio.open_connection(*listener.getsockname())
        connection = await accepted.get()
        assert connection.get_extra_info("socket").getsockopt(IPPROTO_TCP, TCP_NODELAY)
        for writer in (client, connection):
            writer.close()
            await writer.wait_closed()
