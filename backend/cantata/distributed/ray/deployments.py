"""What runs in Ray's actors: the directory, and supervisors of replicas and edges."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from cantata.contract.data.errors import ConfigError, StageDied
from cantata.distributed.ray.arguments import EdgeArguments, ModelArguments, read_arguments
from cantata.distributed.ray.authentication import check_authentication
from cantata.distributed.ray.hosted import start_process
from cantata.distributed.ray.membership import (
    ANNOUNCE_EVERY_S,
    MembershipTable,
    QueueDepth,
    as_plain,
    from_plain,
)
from cantata.distributed.ray.serve_api import DirectoryGone, DirectoryHandle, get_node_address

logger = logging.getLogger("ray.serve")
"""Serve collects it."""
_HANGS_AFTER_S = 60.0
"""A process that reports twice a second and has been silent for this long is replaced."""
MET_WITHIN_S = 10.0
"""A replica waits this long for every edge to find it, and no longer: an edge may be gone."""


class Directory:
    """Knows the replicas of all models. It holds nothing that they do not report again."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        check_authentication(os.environ, "the directory's machine")
        self._table = MembershipTable(time.monotonic)

    async def announce(self, id: str, address: str, model: str, serving: bool) -> QueueDepth:
        return self._table.announce(id, address, model, serving=serving)

    async def read(self, edge: str, waiting: Mapping[str, int]) -> dict[str, Any]:
        return as_plain(self._table.read(edge, waiting))


class _Supervisor(ABC):
    """Hosts a process, and keeps the directory and the process informed of each other."""

    module: ClassVar[str]
    """What the process runs."""
    drain_s: float

    async def _start(self, arguments: Mapping[str, Any]) -> None:
        check_authentication(os.environ, "this machine")
        if (nice := os.nice(0)) > 0:
            logger.warning(
                "Ray runs at nice %d here, so sound yields to everything else: set "
                "RAY_worker_niceness=0 for `ray start`",
                nice,
            )
        self._id = uuid.uuid4().hex
        self._process = await start_process(self.module, arguments)
        self._informing = asyncio.create_task(self._inform(), name="cantata:inform")
        try:
            while not self._is_up(self._process.last_report):
                last_report = await self._process.updates()
                if self._process.ended is not None:
                    raise ConfigError(str(last_report.get("error", self._describe_ending())))
        except BaseException:
            self._process.kill()
            await self._end_informing()
            raise
        # WHY: Serve calls and awaits `__del__` when it stops a replica. One of the class would be
        # called by the interpreter, too, which awaits nothing.
        self.__dict__["__del__"] = self.drain

    async def check_health(self) -> None:
        """Called by Serve, which replaces this replica if it raises. Raises StageDied: the process
        has ended, or hangs."""
        if self._process.ended is not None:
            raise StageDied(self._describe_ending())
        if self._process.silence_s > _HANGS_AFTER_S:
            raise StageDied(f"process {self._process.pid} says nothing any more")

    async def drain(self) -> None:
        """Let the process finish what runs, and then end."""
        code = await self._process.stop(self.drain_s)
        logger.info("process %d ended with %d", self._process.pid, code)
        await self._end_informing()

    async def _end_informing(self) -> None:
        self._informing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._informing

    async def _inform(self) -> None:
        """Until cancelled."""
        directory = DirectoryHandle()
        while True:
            try:
                await self._exchange(directory, self._process.last_report)
            except DirectoryGone as error:
                logger.warning("the directory of replicas does not answer: %s", error)
            await asyncio.sleep(ANNOUNCE_EVERY_S)

    def _describe_ending(self) -> str:
        return f"process {self._process.pid} ended with {self._process.ended}"

    @abstractmethod
    def _is_up(self, last_report: Mapping[str, Any]) -> bool:
        """Whether the process's last report means that it works."""

    @abstractmethod
    async def _exchange(self, directory: DirectoryHandle, last_report: Mapping[str, Any]) -> None:
        """Pass the process's report to the directory, and the directory's answer to the process.
        Raises DirectoryGone: as of `DirectoryHandle`."""


class Replica(_Supervisor):
    """One pipeline replica. `arguments`: of `ModelArguments`."""

    module = "cantata.deploy.replica_process"

    async def __init__(self, arguments: Mapping[str, Any]) -> None:  # type: ignore[misc]
        model = read_arguments(ModelArguments, arguments)
        self.drain_s, self._model = model.drain_s, model.name
        self._demand: QueueDepth | None = None
        self._loaded = False
        await self._start({"host": get_node_address(), "arguments": dict(arguments)})
        await self._wait_until_met()

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """Called by Serve; `PlacesPolicy` reads it."""
        last_report = self._process.last_report
        return {
            "places": float(last_report.get("places", 0)),
            "in_use": float(last_report.get("in_use", 0)),
            "waiting": 0.0 if self._demand is None else self._demand.waiting,
        }

    async def _wait_until_met(self) -> None:
        """Return when the edges know this replica, or after a while. Serve stops an older one as
        soon as this one runs, and an edge must always know one of the two."""
        try:
            async with asyncio.timeout(MET_WITHIN_S):
                while self._process.ended is None and not self._is_met():
                    await self._process.updates()
        except TimeoutError:
            logger.warning("not all edges have found this replica within %g s", MET_WITHIN_S)

    def _is_met(self) -> bool:
        demand = self._demand
        return demand is not None and self._process.last_report.get("edges", 0) >= demand.edges

    def _is_up(self, last_report: Mapping[str, Any]) -> bool:
        return bool(last_report.get("ready"))

    async def _exchange(self, directory: DirectoryHandle, last_report: Mapping[str, Any]) -> None:
        self._loaded = self._loaded or self._is_up(last_report)
        if not self._loaded or "address" not in last_report:  # the last report may be an error
            return
        serving = not last_report["draining"] and self._process.ended is None
        self._demand = await directory.announce(
            self._id, str(last_report["address"]), self._model, serving=serving
        )


class Edge(_Supervisor):
    """One edge. `arguments`: of `EdgeArguments`."""

    module = "cantata.deploy.edge_process"

    async def __init__(self, arguments: Mapping[str, Any]) -> None:  # type: ignore[misc]
        self.drain_s = read_arguments(EdgeArguments, arguments).drain_s
        self._known: frozenset[str] = frozenset()
        await self._start({"arguments": dict(arguments)})

    def _is_up(self, last_report: Mapping[str, Any]) -> bool:
        return bool(last_report.get("accepting"))

    async def _exchange(self, directory: DirectoryHandle, last_report: Mapping[str, Any]) -> None:
        present = from_plain(await directory.read(self._id, last_report.get("waiting", {})))
        known = present.merge_with(self._known)
        if known != self._known:
            self._known = known
            await self._process.send({"addresses": sorted(known)})
