"""The process of one edge on a Ray cluster: `cantata serve` over the replicas that its supervisor
hears of."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console

from cantata.api.server import server_config
from cantata.config import ConversationDeployment
from cantata.contract.data.errors import CantataError
from cantata.deploy.cluster_source import ModelsOnCluster
from cantata.distributed.address import Address
from cantata.distributed.ray.arguments import EdgeArguments, read_arguments
from cantata.distributed.ray.hosted import connect_actor, hosted
from cantata.serving import server
from cantata.utils.logs import LogFormat, configure_logging

_EVERYWHERE = "0.0.0.0"


class HeardDirectory:
    """The replicas, as the actor hears of them."""

    def __init__(self) -> None:
        self._sets: asyncio.Queue[frozenset[Address]] = asyncio.Queue()

    def hear(self, message: Mapping[str, Any]) -> None:
        """A new set."""
        self._sets.put_nowait(frozenset(map(Address.parse, message["addresses"])))

    async def watch(self) -> AsyncIterator[frozenset[Address]]:
        while True:
            yield await self._sets.get()


async def main() -> int:
    """Until the actor says or ends. Returns the exit code."""
    actor, startup = await connect_actor()
    edge = read_arguments(EdgeArguments, startup["arguments"])
    directory = HeardDirectory()
    source = ModelsOnCluster(directory)
    accepting = asyncio.Event()

    def report() -> Mapping[str, Any]:
        return {"accepting": accepting.is_set(), "waiting": source.queued}

    try:
        async with hosted(actor, report, directory.hear):
            await _serve(edge, source, accepting.set)
    except CantataError as error:
        actor.send_report({"error": error.message})
        return 1
    return 0


async def _serve(
    edge: EdgeArguments, source: ModelsOnCluster, on_accepting: Callable[[], None]
) -> None:
    listening = server.ListenOptions(_EVERYWHERE, edge.edges.port, shared=True)
    options = build_operator_options(edge)
    console = Console(stderr=True)
    await server.serve(listening, source, options, LogFormat.TEXT, console, on_accepting)


def build_operator_options(edge: EdgeArguments) -> server_config.ServerOptions:
    """What an edge on the cluster is told, as a command line would say it."""
    options = server_config.ServerOptions(
        api_keys=os.environ.get(server_config.KEYS_VARIABLE, ""),
        api_key_file=None if edge.api_key_file is None else Path(edge.api_key_file),
        no_auth=edge.no_auth,
        voices_url=edge.voices,
        drain_timeout_s=edge.drain_s,
        chat=server_config.read_chat_endpoint(None, None),
        transcription=server_config.read_stt_endpoint(None, None),
    )
    return server.with_conversation(options, edge.realtime or ConversationDeployment())


if __name__ == "__main__":
    configure_logging(logging.INFO, LogFormat.TEXT, "cantata:edge")
    sys.exit(uvloop.run(main()))
