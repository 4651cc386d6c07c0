"""Where a model runs when it runs on several machines: the addresses of its stages, and the
`cluster` section of its deployment."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from cantata.config.strict_model import StrictModel

_AUTO = "auto"
_MAX_PORT = 65535


def _names_a_port(address: str) -> bool:
    host, _, port = address.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) <= _MAX_PORT


def _check_stage_host(address: str) -> str:
    if not _names_a_port(address):
        raise ValueError("write HOST:PORT of a stage host, such as 10.0.0.8:8200")
    return address


def _check_address(address: str) -> str:
    if address.startswith("ray://"):
        raise ValueError(
            "a Ray client (ray://) cannot serve; run the command on a machine of the cluster, or "
            "write HOST:PORT of its head"
        )
    if address != _AUTO and not _names_a_port(address):
        raise ValueError(f"write {_AUTO!r}, or HOST:PORT of Ray's head, commonly port 6379")
    return address


def _check_label(label: str) -> str:
    key, _, value = label.partition("=")
    if not key or not value or "=" in value or label.split() != [label]:
        raise ValueError("write a label of Ray's nodes as KEY=VALUE")
    return label


def _check_store(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if not separator or not scheme or not rest:
        raise ValueError("write a URL such as s3://bucket/voices or file:///shared/voices")
    return url


StageHostAddress = Annotated[str, AfterValidator(_check_stage_host)]
"""HOST:PORT where `cantata stage-host` listens."""
NodeLabel = Annotated[str, AfterValidator(_check_label)]
"""`KEY=VALUE`, as in `ray start --labels KEY=VALUE`."""
Port = Annotated[int, Field(ge=1, le=_MAX_PORT)]
Count = Annotated[int, Field(ge=1, le=1024)]
SurgePercent = Annotated[int, Field(ge=0, le=100)]
"""Of a number of processes, rounded up: how many more an upgrade may start before it stops old
ones, so that as many serve throughout. They need room on the cluster: without it, the old ones
serve until there is some. 0: old ones stop first."""
_SURGE_PERCENT = 20


class EdgesOptions(StrictModel):
    """The processes that clients reach."""

    replicas: Count = 1
    port: Port = 8000
    """Port on each machine with an edge; several edges on one machine share it."""
    node: NodeLabel | None = None
    """Machines that may have one; None: all."""
    max_surge_percent: SurgePercent = _SURGE_PERCENT


class ReplicasOptions(StrictModel):
    """The processes that speak; each has every stage of the model."""

    min: Count = 1
    max: Count | None = None
    """None: as many as `min`."""
    fill: Annotated[float, Field(gt=0, le=1)] = 0.7
    """The part of all places that is to be taken: above it a replica is added, and one is removed
    when the others stay below it without it."""
    cpus: Annotated[float, Field(gt=0, le=1024)] = 1.0
    """Cores that Ray sets aside for one."""
    max_surge_percent: SurgePercent = _SURGE_PERCENT

    @property
    def most(self) -> int:
        """The upper bound of their number."""
        return self.max or self.min

    @model_validator(mode="after")
    def check_bounds(self) -> ReplicasOptions:
        """The bounds leave a number between them."""
        if self.most < self.min:
            raise ValueError(f"max {self.max} must be at least min {self.min}")
        return self


class StagePlacement(StrictModel):
    """What one stage needs from its machine."""

    gpus: Annotated[float, Field(ge=0, le=64)] = 0.0
    """Part of a GPU, or several."""
    node: NodeLabel | None = None


class ClusterOptions(StrictModel):
    """A model on the machines of a Ray cluster."""

    address: Annotated[str, AfterValidator(_check_address)] = _AUTO
    """Address of Ray's head; `auto`: the cluster that this machine belongs to."""
    edges: EdgesOptions = EdgesOptions()
    replicas: ReplicasOptions = ReplicasOptions()
    stages: Mapping[str, StagePlacement] = Field(default_factory=dict)
    voices: Annotated[str, AfterValidator(_check_store)] | None = None
    """Where uploaded voices are kept, for all edges: a URL that fsspec understands. None: each
    edge keeps its own, on its machine."""
    drain_s: Annotated[float, Field(ge=0, le=3600)] = 60.0
    """Seconds that running requests may take to end before a replica or an edge is stopped."""

    @property
    def gpus(self) -> float:
        """GPUs that all stages of one replica need together."""
        return math.fsum(stage.gpus for stage in self.stages.values())

    @property
    def nodes(self) -> frozenset[str]:
        """Labels that the stages ask for."""
        return frozenset(stage.node for stage in self.stages.values() if stage.node)

    def only(self, stages: Collection[str]) -> ClusterOptions:
        kept = {name: stage for name, stage in self.stages.items() if name in stages}
        return self.model_copy(update={"stages": kept})

    def check_stages(
        self, on_gpu: Collection[str], names: Collection[str], on_hosts: Collection[str]
    ) -> None:
        """Whether these options fit the stages.

        Args:
            on_gpu: stages whose device is a GPU.

        Raises:
            ValueError: says which stage is at fault.
        """
        unknown = sorted(set(self.stages) - set(names))
        if unknown:
            raise ValueError(f"cluster.stages: unknown stages {unknown}; valid: {sorted(names)}")
        given = {name for name, stage in self.stages.items() if stage.gpus}
        if given != set(on_gpu):
            raise ValueError(
                f"cluster.stages: give gpus to the stages with device 'cuda', {sorted(on_gpu)}, "
                f"and to no others; they are given to {sorted(given)}"
            )
        if on_hosts:
            raise ValueError(
                "the stages of one replica on a Ray cluster run on one machine, so the stages "
                f"{sorted(on_hosts)} cannot name a host"
            )
        if len(self.nodes) > 1:
            raise ValueError(
                f"cluster.stages: the stages of one replica run on one machine, so they cannot "
                f"ask for {sorted(self.nodes)}"
            )
        if self.gpus > 1 and not self.gpus.is_integer():
            raise ValueError(
                f"cluster.stages: gpus add up to {self.gpus:g}; Ray gives a process up to 1, or a "
                "whole number"
            )
