"""A model's frozen topology: its stages, their ports, and the edges between them.

What users may edit (devices, slots, memory, chunk policy) is not here but in the deployment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from cantata.contract.data.chunks import Codes, Payload, Pcm, Progress, Rows
from cantata.contract.data.errors import ConfigError
from cantata.contract.data.transcripts import TranscriptUpdate

CLIENT = "client"
"""The target of edges whose chunks the api receives."""
CODES = "codes"
"""The port of an AR stage. Also of a diffusion stage whose model is a `Writer`: it replaces
`LATENTS` unless the stage declares both."""
LATENTS = "latents"
"""The port of a diffusion stage. Also of an AR stage whose talker has a `latent_size`, where it
replaces `CODES`."""
ROWS = "rows"
"""A further port that an AR stage may have if its talker has an `export_width`."""
PCM = "pcm"
"""The port of a codec stage."""
PROGRESS = "progress"
"""A further port that a diffusion stage may have, for the client."""
TRANSCRIPT = "transcript"
"""The port of a recognition stage."""


class StageKind(StrEnum):
    """How a stage is scheduled."""

    AR = "ar"
    """Autoregressive on vLLM: one frame per request and step."""
    CODEC = "codec"
    """Slot-indexed streaming decoder: codes or latents in, PCM out."""
    FEED_FORWARD = "feed_forward"
    """Whole inputs in, whole outputs out, in batches: encoders, and decoders of pictures. With a
    port of `Pcm`: a voice of one network, whose sound leaves part by part."""
    DIFFUSION = "diffusion"
    """Denoising: steps of requests at different depths, whichever `step_plan` picks next."""
    RECOGNITION = "recognition"
    """Speech to text: windows of sound, some of which still arrive, those that speakers wait for
    first."""


@dataclass(frozen=True, slots=True)
class KindPorts:
    """The payloads that stages of one kind take and make."""

    accepts: tuple[type[Payload], ...]
    outputs: Mapping[str, type[Payload]]
    """What every stage of the kind makes, by port."""
    optional: Mapping[str, type[Payload]] | None
    """What a stage may declare in addition. None: anything."""
    replaces: Mapping[str, str] = field(default_factory=dict)
    """Optional port -> the output that it replaces, unless the stage declares that output, too."""


PORTS: Mapping[StageKind, KindPorts] = {
    StageKind.AR: KindPorts(
        (Codes, Rows),
        outputs={CODES: Codes},
        optional={ROWS: Rows, LATENTS: Rows},
        replaces={LATENTS: CODES},
    ),
    StageKind.CODEC: KindPorts((Codes, Rows), outputs={PCM: Pcm}, optional={}),
    StageKind.FEED_FORWARD: KindPorts((Codes, Rows), outputs={}, optional=None),
    StageKind.DIFFUSION: KindPorts(
        (Rows,),
        outputs={LATENTS: Rows},
        optional={PROGRESS: Progress, CODES: Codes, LATENTS: Rows},
        replaces={CODES: LATENTS},
    ),
    StageKind.RECOGNITION: KindPorts((), outputs={TRANSCRIPT: TranscriptUpdate}, optional={}),
}


@dataclass(frozen=True, slots=True)
class StageSpec:
    name: str
    kind: StageKind
    factory: str
    """`package.module:attribute` that builds this stage's model; imported only in its process."""
    plain: str | None = None
    """For an AR stage that can do without vLLM: `package.module:function` of a function
    `(checkpoint, PlainTalkerOptions) -> PlainTalker`. None: it needs vLLM."""
    outputs: Mapping[str, type[Payload]] = field(default_factory=dict)
    """What the stage makes in addition to the outputs of its kind, by port."""

    @property
    def accepts(self) -> tuple[type[Payload], ...]:
        return PORTS[self.kind].accepts

    @property
    def ports(self) -> Mapping[str, type[Payload]]:
        kind = PORTS[self.kind]
        replaced = {kind.replaces.get(port) for port in self.outputs}
        own = {port: output for port, output in kind.outputs.items() if port not in replaced}
        return {**own, **self.outputs}


@dataclass(frozen=True, slots=True)
class EdgeSpec:
    """An edge: chunks flow from a stage's port to another stage, or to the api."""

    source: str
    """`stage.port` where the edge starts."""
    target: str
    """Name of the stage where the edge ends, or `CLIENT`."""

    @property
    def stage(self) -> str:
        return self.source.partition(".")[0]

    @property
    def port(self) -> str:
        return self.source.partition(".")[2]


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """Stages in the order in which data flows, and the edges between them.

    Raises:
        ConfigError: duplicate or unknown stages or ports, an edge against the order or whose target
            does not take its payload, a port that nobody hears of or that its kind cannot have, or
            no edge to `CLIENT`.
    """

    stages: tuple[StageSpec, ...]
    edges: tuple[EdgeSpec, ...]

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages]
        if len({*names, CLIENT}) != len(names) + 1:
            raise ConfigError(f"stage names must differ, also from {CLIENT!r}: {names}")
        if len(set(self.edges)) != len(self.edges):
            raise ConfigError("a pipeline must list each edge once")
        for edge in self.edges:
            self._check(edge)
        for stage in self.stages:
            self._check_ports(stage)
        if not self.client_edges:
            raise ConfigError(f"a pipeline needs an edge to {CLIENT!r}")

    @property
    def client_edges(self) -> tuple[EdgeSpec, ...]:
        """The edges whose chunks the api receives."""
        return self.get_inputs(CLIENT)

    @property
    def makes_sound(self) -> bool:
        """Whether any edge of sound ends at the client."""
        return any(self._get_payload_type(edge) is Pcm for edge in self.client_edges)

    @property
    def sound(self) -> EdgeSpec:
        """The edge on which the client hears the pipeline. Raises ConfigError: there is none, or
        more than one."""
        edges = [edge for edge in self.client_edges if self._get_payload_type(edge) is Pcm]
        if len(edges) != 1:
            raise ConfigError(f"speech needs one edge of sound to {CLIENT!r}, not {len(edges)}")
        return edges[0]

    def stage(self, name: str) -> StageSpec:
        """A stage by its name. Raises KeyError: there is none."""
        return {stage.name: stage for stage in self.stages}[name]

    def get_inputs(self, name: str) -> tuple[EdgeSpec, ...]:
        """Edges that end in stage `name`, or at `CLIENT`."""
        return tuple(edge for edge in self.edges if edge.target == name)

    def get_outputs(self, name: str) -> tuple[EdgeSpec, ...]:
        return tuple(edge for edge in self.edges if edge.stage == name)

    def taking_part(
        self, inputs: Collection[str], without: Collection[str] = ()
    ) -> tuple[StageSpec, ...]:
        """The stages that take part in a request with inputs for these: the stages themselves, and
        all that follow them.

        Args:
            inputs: names of stages.
            without: as in `PipelineRequest`.
        """
        part = set(inputs).difference(without)
        for stage in self.stages:
            fed_by = (edge for edge in self.get_inputs(stage.name) if edge.source not in without)
            if stage.name not in without and any(edge.stage in part for edge in fed_by):
                part.add(stage.name)
        return tuple(stage for stage in self.stages if stage.name in part)

    def without(self, stages: Collection[str]) -> PipelineSpec:
        """The pipeline without these stages, without their edges, and without declared ports that
        fed only them. Raises ConfigError: what is left is no pipeline."""
        edges = tuple(e for e in self.edges if not {e.stage, e.target} & set(stages))
        fed = {edge.source for edge in edges}
        kept = (stage for stage in self.stages if stage.name not in stages)
        return PipelineSpec(tuple(_with_ports(stage, fed) for stage in kept), edges)

    def _check_ports(self, stage: StageSpec) -> None:
        optional = PORTS[stage.kind].optional
        if optional is not None and not stage.outputs.items() <= optional.items():
            declared, valid = list(stage.outputs), list(optional)
            raise ConfigError(f"stage {stage.name!r} declares ports {declared}; valid: {valid}")
        if stage.kind is StageKind.FEED_FORWARD and Pcm in stage.ports.values():
            ends = [edge.source for edge in self.get_inputs(stage.name)]
            if len(stage.ports) > 1 or ends:
                raise ConfigError(
                    f"stage {stage.name!r} makes sound: that is its only port, and no edge ends "
                    f"there; ports: {list(stage.ports)}, edges from: {ends}"
                )
        used = {edge.port for edge in self.get_outputs(stage.name)}
        unused = [port for port in stage.ports if port not in used]
        if unused or not used:
            raise ConfigError(f"no edge starts at stage {stage.name!r}, ports {unused}")

    def _check(self, edge: EdgeSpec) -> None:
        names = [stage.name for stage in self.stages]
        for end in (edge.stage, edge.target):
            if end not in (*names, CLIENT) or end == edge.stage == CLIENT:
                raise ConfigError(f"edge names unknown stage {end!r}; stages: {names}")
        ports = self.stage(edge.stage).ports
        if edge.port not in ports:
            raise ConfigError(f"edge starts at {edge.source!r}; ports there: {list(ports)}")
        if edge.target == CLIENT:
            return
        if names.index(edge.stage) >= names.index(edge.target):
            raise ConfigError(
                f"edge {edge.source!r} -> {edge.target!r} runs against the order {names}"
            )
        payload, accepts = self._get_payload_type(edge), self.stage(edge.target).accepts
        if payload not in accepts:
            valid = [accepted.__name__ for accepted in accepts]
            raise ConfigError(
                f"edge {edge.source!r} -> {edge.target!r} carries {payload.__name__}; "
                f"{edge.target!r} takes {valid}"
            )

    def _get_payload_type(self, edge: EdgeSpec) -> type[Payload]:
        return self.stage(edge.stage).ports[edge.port]


def _with_ports(stage: StageSpec, fed: Collection[str]) -> StageSpec:
    """The stage with those declared ports that feed an edge."""
    outputs = {
        port: output for port, output in stage.outputs.items() if f"{stage.name}.{port}" in fed
    }
    return replace(stage, outputs=outputs)
