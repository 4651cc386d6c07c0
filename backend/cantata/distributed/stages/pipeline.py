"""The stages of one pipeline that run on other machines, and the edges that lead there and back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from cantata.contract.model.pipeline import EdgeSpec
from cantata.distributed.address import Address
from cantata.distributed.identity import hash_files, versions
from cantata.distributed.key import LinkKey, check_key
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.stages.host_link import HostLink
from cantata.distributed.stages.messages import PipelineCommand
from cantata.distributed.stages.remote_stage import RemoteStage
from cantata.distributed.stages.unix_edges import Take, UnixEdgeWriter, relay_from
from cantata.ipc.encoded import EncodedChunks
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.remote_stages import RemoteEdge
from cantata.pipeline.stage_process import Death, Report

NOT_SENT = {"cluster", "realtime"}
"""Sections of a deployment that concern the server alone."""


class StagesOnHosts:
    """Implements `pipeline.remote_stages.RemoteStages` over a link to each host.

    Every edge that leaves a machine passes through this one, even between two hosts: each host has
    only one peer to lose.

    Raises:
        ConfigError: an address is none, or needs a key.
    """

    def __init__(self, plan: ServicePlan, key: LinkKey) -> None:
        self._plan, self._key = plan, key
        self._hosts = {name: Address.parse(host) for name, host in plan.deployment.hosts.items()}
        for address in self._hosts.values():
            check_key(key, address)
        self._files = hash_files(plan.located.checkpoint)
        self._heartbeat = Heartbeat()
        self._links: dict[Address, HostLink] = {}
        self._stages: dict[str, RemoteStage] = {}
        self._outlets: dict[EdgeSpec, UnixEdgeWriter] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._on_leaving: Callable[[], None] = lambda: None

    def begin(self, edges: Sequence[RemoteEdge], on_leaving: Callable[[], None]) -> None:
        """Connect to the hosts, and carry what crosses these edges from now on."""
        self._on_leaving = on_leaving
        for address in sorted(set(self._hosts.values())):
            link = self._links[address] = HostLink(
                address,
                self._key,
                self._heartbeat,
                [one.edge for one in edges if self._hosts.get(one.edge.target) == address],
                [one.edge for one in edges if self._hosts.get(one.edge.stage) == address],
                self._carry_from,
                partial(self._on_host_leaving, address),
            )
            self._run(link.keep(self._build_command(address)), f"cantata:stages-on:{address}")
        for one in edges:
            if one.address is not None:
                self._outlets[one.edge] = UnixEdgeWriter(one.address)
            if one.listener is not None:
                self._run(relay_from(one.listener, self._carry_from(one.edge)), "cantata:edge")

    def stage(
        self,
        name: str,
        on_message: Callable[[str, Report], None],
        on_death: Callable[[str, Death], None],
    ) -> RemoteStage:
        address = self._hosts[name]
        edges = self._plan.pipeline.get_outputs(name)
        ports = {edge.port for edge in edges if self._hosts.get(edge.target) != address}
        link = self._links[address]
        stage = self._stages[name] = RemoteStage(name, link, ports, on_message, on_death)
        return stage

    def disconnect_draining(self) -> None:
        for link in self._links.values():
            link.disconnect_draining()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for outlet in self._outlets.values():
            await outlet.close()
        self._heartbeat.close()

    def _on_host_leaving(self, address: Address) -> None:
        for name, stage in self._stages.items():
            if self._hosts[name] == address:
                stage.leave()
        self._on_leaving()

    def _carry_from(self, edge: EdgeSpec) -> Take:
        return partial(self._carry, edge)

    async def _carry(self, edge: EdgeSpec, encoded: EncodedChunks) -> None:
        """Pass chunks on to wherever their edge ends. Raises BrokenChannel: these are no chunks."""
        if edge.stage in self._stages:
            self._stages[edge.stage].passed(encoded.heads())
        if edge in self._outlets:
            await self._outlets[edge].put(encoded)
        else:
            await self._links[self._hosts[edge.target]].put(edge, encoded)

    def _build_command(self, address: Address) -> PipelineCommand:
        located, deployment = self._plan.located, self._plan.deployment
        ships = located.checkpoint == located.plugin.embedded_checkpoint
        return PipelineCommand(
            model=located.plugin.name,
            checkpoint=None if ships else str(located.checkpoint.absolute()),
            files=self._files,
            versions=versions(),
            deployment=deployment.model_dump(mode="json", exclude=NOT_SENT),
            here=tuple(name for name, host in self._hosts.items() if host == address),
        )

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))
