"""A model's frozen topology: its stages and the edges between them.

What users may edit (devices, slots, memory, chunk policy) is not here but in the deployment.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cantata.contract.data.errors import ConfigError


class StageKind(StrEnum):
    """How a stage is scheduled."""

    PREPROCESS = "preprocess"
    """Whole requests in, conditioning out (reference encoders)."""
    AR = "ar"
    """Autoregressive on vLLM: one frame per request and step."""
    CODEC = "codec"
    """Slot-indexed streaming decoder: frames in, PCM out."""
    DIFFUSION = "diffusion"
    """A denoising loop over a fixed number of steps."""


@dataclass(frozen=True, slots=True)
class StageSpec:
    """One stage of a pipeline."""

    name: str
    kind: StageKind
    factory: str
    """`package.module:attribute` that builds this stage's model, imported in its process alone."""
    plain: str | None = None
    """Of an AR stage that can do without vLLM for one listener: `package.module:function`, a
    function `(checkpoint, BackboneKernels) -> PlainTalker`. None: it cannot."""


@dataclass(frozen=True, slots=True)
class EdgeSpec:
    """Chunks flow from one stage to another."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """Stages in the order in which data flows, and the edges between them.

    Raises:
        ConfigError: duplicate or unknown stage names, a cycle, or no single last stage.
    """

    stages: tuple[StageSpec, ...]
    edges: tuple[EdgeSpec, ...]

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages]
        if len(set(names)) != len(names):
            raise ConfigError(f"stage names must differ: {names}")
        for edge in self.edges:
            for end in (edge.source, edge.target):
                if end not in names:
                    raise ConfigError(f"edge names unknown stage {end!r}; stages: {names}")
            if names.index(edge.source) >= names.index(edge.target):
                raise ConfigError(
                    f"edge {edge.source!r} -> {edge.target!r} runs against the order {names}"
                )
        sinks = [name for name in names if all(edge.source != name for edge in self.edges)]
        if len(sinks) != 1:
            raise ConfigError(f"a pipeline has exactly one last stage, this one has {sinks}")

    @property
    def output(self) -> StageSpec:
        """The stage whose chunks the api receives."""
        sources = {edge.source for edge in self.edges}
        return next(stage for stage in self.stages if stage.name not in sources)

    def inputs_of(self, name: str) -> tuple[EdgeSpec, ...]:
        """Edges that end in stage `name`."""
        return tuple(edge for edge in self.edges if edge.target == name)

    def outputs_of(self, name: str) -> tuple[EdgeSpec, ...]:
        """Edges that start in stage `name`."""
        return tuple(edge for edge in self.edges if edge.source == name)
