"""`cantata serve --cluster`: one edge here, over models that Ray places."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cantata.config import Dtype
from cantata.deploy.cluster_source import ModelsOnCluster
from cantata.deploy.serve_config import describe_models, join
from cantata.distributed.address import Address
from cantata.distributed.ray.arguments import DIRECTORY, as_plain
from cantata.distributed.ray.membership import ANNOUNCE_EVERY_S, from_plain
from cantata.serving.server import with_conversation

if TYPE_CHECKING:
    from cantata.api.server.server_config import ServerOptions

logger = logging.getLogger(__name__)


class PolledDirectory:
    """The cluster's directory, asked again and again. `queued`: requests that wait at this edge, by
    model."""

    def __init__(self, queued: Callable[[], Mapping[str, int]]) -> None:
        self._queued = queued
        self._id = uuid.uuid4().hex

    async def watch(self) -> AsyncIterator[frozenset[Address]]:
        from cantata.distributed.ray.serve_api import DirectoryGone, DirectoryHandle

        directory, known = DirectoryHandle(), frozenset[str]()
        while True:
            try:
                present = from_plain(await directory.read(self._id, self._queued()))
            except DirectoryGone as error:
                logger.warning("the directory of replicas does not answer: %s", error)
            else:
                before, known = known, present.merge_with(known)
                if known != before:
                    yield frozenset(map(Address.parse, known))
            await asyncio.sleep(ANNOUNCE_EVERY_S)


class ModelsOnRay(ModelsOnCluster):
    """Models that are submitted to a cluster, and served by this process as an edge of it. They
    stay there when it ends.

    Args:
        address: of Ray's head; `auto`: of the cluster that this machine belongs to.
        models: names, checkpoint folders that every machine has, or a hub's ids.
        deploy: deployment files of the first ones.
    """

    def __init__(
        self, address: str, models: Sequence[str], deploy: Sequence[Path], dtype: Dtype | None
    ) -> None:
        super().__init__(PolledDirectory(lambda: self.queued))
        self._address = address
        self._named = models, deploy, dtype

    def prepare(self, options: ServerOptions) -> ServerOptions:
        """Submit the models, unless they run there: `cantata deploy` upgrades."""
        models, for_edges = describe_models(*self._named)
        join(self._address)
        from cantata.distributed.ray import applications, serve_api

        there = serve_api.running()
        built = {
            one.application: applications.replicas(as_plain(one))
            for one in models
            if one.application not in there
        }
        if DIRECTORY not in there:
            built[DIRECTORY] = applications.directory({})
        if built:
            serve_api.submit(built, wait=False)
        if options.voices_dir is None and options.voices_url is None:
            options = replace(options, voices_url=for_edges.cluster.voices)
        return with_conversation(options, for_edges.realtime)
