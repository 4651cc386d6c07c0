"""How a pipeline's stages are launched: which socket each end of an edge gets."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cantata.config import Deployment
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec
from cantata.ipc.connectors import listen, make_address
from cantata.pipeline.remote_stages import RemoteEdge
from cantata.stages.process.launch import StageLaunch
from cantata.utils.logs import LogFormat


@dataclass(frozen=True, slots=True)
class PlannedEdges:
    """The Unix sockets of those edges that have an end on this machine."""

    addresses: Mapping[EdgeSpec, str]
    listeners: Mapping[EdgeSpec, socket.socket]
    crossing: tuple[RemoteEdge, ...]
    """Those whose other end is on another machine, or whose ends are on two others."""


def plan_edges(pipeline: PipelineSpec, hosts: Mapping[str, str]) -> PlannedEdges:
    """Make the sockets. `hosts`: of the stages that run elsewhere."""
    addresses: dict[EdgeSpec, str] = {}
    listeners: dict[EdgeSpec, socket.socket] = {}
    crossing = []
    for edge in pipeline.edges:
        if edge.target == CLIENT:
            continue
        source, target = hosts.get(edge.stage), hosts.get(edge.target)
        if source is None or target is None:
            address = addresses[edge] = make_address(f"{edge.source}-{edge.target}")
            listeners[edge] = listen(address)
        if source is None and target is not None:
            crossing.append(RemoteEdge(edge, listener=listeners[edge]))
        elif source is not None and target is None:
            crossing.append(RemoteEdge(edge, address=addresses[edge]))
        elif source != target:
            crossing.append(RemoteEdge(edge))
    return PlannedEdges(addresses, listeners, tuple(crossing))


def plan_launch(
    name: str,
    pipeline: PipelineSpec,
    edges: PlannedEdges,
    checkpoint: Path,
    deployment: Deployment,
    log_level: int,
    log_format: LogFormat,
    *,
    reports_needs: bool = False,
) -> StageLaunch:
    """Plan the launch of a stage that runs on this machine. `reports_needs`: as in
    `StageLaunch`."""
    outputs: dict[str, tuple[str, ...]] = {}
    client_ports = []
    for edge in pipeline.get_outputs(name):
        if edge.target == CLIENT:
            client_ports.append(edge.port)
        else:
            outputs[edge.port] = (*outputs.get(edge.port, ()), edges.addresses[edge])
    return StageLaunch(
        title=f"cantata:{name}:0",
        spec=pipeline.stage(name),
        checkpoint=checkpoint,
        deployment=deployment.stages[name],
        async_chunk=deployment.async_chunk,
        inputs=tuple(edges.listeners[edge] for edge in pipeline.get_inputs(name)),
        outputs=outputs,
        client_ports=tuple(client_ports),
        reports_needs=reports_needs,
        log_level=log_level,
        log_format=log_format,
    )
