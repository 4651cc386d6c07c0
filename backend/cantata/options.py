"""What several commands take: types of options, quick to import."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cantata.logs import LogFormat


class Dtype(StrEnum):
    """Numbers that a model computes with."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


class LogLevel(StrEnum):
    """What is logged at least."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Form(StrEnum):
    """What `cantata deploy` prints instead of submitting it."""

    SERVE = "serve"
    """For `serve deploy`, or Ray's REST interface."""
    KUBERNETES = "kubernetes"
    """KubeRay's RayService, and a Service before the edges."""


Models = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME_OR_CHECKPOINT", help="Repeatable. Default: all that ship with weights."
    ),
]
Deployments = Annotated[
    list[Path] | None,
    typer.Option(
        exists=True, dir_okay=False, help="Deployment YAML; of each model, in their order."
    ),
]
ClusterKeyFile = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="The key that servers and replicas share; also from CANTATA_CLUSTER_KEY.",
    ),
]
DrainTimeout = Annotated[
    float,
    typer.Option(min=0, metavar="SECONDS", help="For running utterances to end, on SIGTERM."),
]
LogLevels = Annotated[LogLevel, typer.Option(help="Minimum level to log.")]
LogFormats = Annotated[LogFormat, typer.Option(help="Text, or JSON with one record per line.")]
