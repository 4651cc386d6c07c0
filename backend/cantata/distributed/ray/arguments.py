"""The arguments of the applications on the cluster: plain data, checked where it is made and where
it arrives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from cantata.config import ConversationDeployment, Dtype
from cantata.config.cluster import EdgesOptions, NodeLabel, ReplicasOptions
from cantata.config.strict_model import StrictModel
from cantata.contract.data.errors import ConfigError

DIRECTORY, EDGES, MODEL_PREFIX = "cantata-directory", "cantata-edges", "cantata-model-"
"""Names of Ray Serve's applications."""


class ModelArguments(StrictModel):
    name: str
    """The plug-in's."""
    model: str
    """A plug-in's name, a checkpoint folder that every machine has, or a hub's id."""
    deployment: Mapping[str, Any]
    """As in its file."""
    dtype: Dtype | None = None
    replicas: ReplicasOptions
    gpus: Annotated[float, Field(ge=0)] = 0.0
    """GPUs for one replica; parts of one are valid."""
    node: NodeLabel | None = None
    drain_s: float

    @property
    def application(self) -> str:
        """Its name on the cluster."""
        return f"{MODEL_PREFIX}{self.name}"


class EdgeArguments(StrictModel):
    """The edges, of all models."""

    edges: EdgesOptions
    voices: str | None = None
    drain_s: float
    no_auth: bool = False
    api_key_file: str | None = None
    """On the machines of the edges."""
    realtime: ConversationDeployment | None = None
    """What hears and answers in spoken conversations; None: what does by default."""


A = TypeVar("A", bound=StrictModel)


def read_arguments(kind: type[A], raw: Mapping[str, Any]) -> A:
    """Plain data -> arguments. Raises ConfigError: they were written for another version, or by
    hand with a mistake."""
    try:
        return kind.model_validate(dict(raw))
    except ValidationError as error:
        raise ConfigError(f"arguments of an application: {error}") from error


def as_plain(arguments: StrictModel) -> dict[str, Any]:
    """Arguments in the form that Serve's configuration takes; unset fields are left out."""
    return arguments.model_dump(mode="json", exclude_none=True)
