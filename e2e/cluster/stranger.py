"""One who reaches a host of the cluster but has neither Ray's token nor the links' key.

python -m e2e.cluster.stranger HOST PORT... prints what each port answers, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

import grpc
import httpx

from cantata.distributed.address import Address
from cantata.distributed.key import LinkKey
from cantata.distributed.link.connecting import connect
from cantata.distributed.link.errors import LinkLost

LIMIT_S = 10.0
PATHS = ("/", "/health", "/metrics", "/api/version", "/api/v0/nodes", "/api/local_raylet_healthz")
"""Of servers and dashboards."""
CALLS = (
    "rpc.NodeInfoGcsService/GetAllNodeInfo",
    "rpc.JobInfoGcsService/GetAllJobInfo",
    "rpc.InternalKVGcsService/InternalKVKeys",
    "rpc.NodeManagerService/GetNodeStats",
    "rpc.ObjectManagerService/Pull",
    "rpc.CoreWorkerService/GetCoreWorkerStats",
    "rpc.RayletDriver/ClusterInfo",
    "rpc.ReporterService/GetTraceback",
    "rpc.LogService/ListLogs",
    "serve.ASGIService/HandleRequest",
)
"""Of each service that Ray's processes have, one that changes nothing."""


@dataclass
class Answers:
    """Of one port."""

    open: bool = False
    paths: dict[str, int] = field(default_factory=dict)
    """Status by path, of those with an answer in HTTP."""
    calls: dict[str, str] = field(default_factory=dict)
    """gRPC's status by call, of those that a server has."""
    figures: bool = False
    """Whether whatever is asked for is answered with Prometheus's figures."""
    link: str = ""
    """Why a link was refused; empty: none was."""


def ask(host: str, port: int) -> Answers:
    """Everything that a stranger would try."""
    answers = Answers()
    try:
        httpx.get(f"http://{host}:{port}/", timeout=LIMIT_S)
        answers.open = True
    except httpx.ConnectError:
        return answers
    except httpx.HTTPError:
        answers.open = True
    bodies = []
    for path in PATHS:
        try:
            answer = httpx.get(f"http://{host}:{port}{path}", timeout=LIMIT_S)
        except httpx.HTTPError:
            continue
        answers.paths[path] = answer.status_code
        bodies.append(answer.text)
    answers.figures = bool(bodies) and all(body.startswith("# HELP ") for body in bodies)
    with grpc.insecure_channel(f"{host}:{port}") as channel:
        for call in CALLS:
            if (status := _call(channel, call)) is not None:
                answers.calls[call] = status
    answers.link = asyncio.run(_link(Address(host, port)))
    return answers


def _call(channel: grpc.Channel, name: str) -> str | None:
    method = channel.unary_unary(f"/ray.{name}", lambda body: body, lambda body: body)
    try:
        method(b"", timeout=LIMIT_S)
    except grpc.RpcError as error:
        code = error.code()
        nothing = code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNIMPLEMENTED)
        return None if nothing else str(code.name)
    return "OK"


async def _link(address: Address) -> str:
    try:
        sock = await connect(address, LinkKey(b"another key of 32 bytes, I guess"))
    except LinkLost as error:
        return f"{type(error).__name__}: {error.reason}"
    sock.close()
    return ""


if __name__ == "__main__":
    host, *ports = sys.argv[1:]
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda port: asdict(ask(host, int(port))), ports)
    print(json.dumps(dict(zip(ports, found, strict=True))))
