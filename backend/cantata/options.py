"""What commands take: types of options, quick to import."""

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
WyomingPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Serve Wyoming (Home Assistant) too, commonly on 10200."),
]
ApiKeyFile = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="API keys, one per line; also from CANTATA_API_KEYS, comma-separated.",
    ),
]
NoAuth = Annotated[
    bool, typer.Option("--no-auth", help="Listen beyond this machine without API keys.")
]
PrivateLists = Annotated[
    bool, typer.Option("--private-lists", help="List models and voices with a key only.")
]
AllowedOrigins = Annotated[
    list[str] | None,
    typer.Option(metavar="ORIGIN", help="A site whose pages may use this server. Repeatable."),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="A name of this server, where it has no API keys. Repeatable."
    ),
]
MostPerKey = Annotated[
    int | None, typer.Option(min=1, help="Requests that one API key may have open.")
]
VoicesFolder = Annotated[
    Path | None,
    typer.Option(file_okay=False, help="Uploaded voices. Default: the user's data folder."),
]
VoicesUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Voices that servers share instead: fsspec's, s3://..."),
]
AllowRefUrls = Annotated[
    bool,
    typer.Option("--allow-ref-urls", help="Fetch recordings and media from public addresses."),
]
RefUrlPorts = Annotated[
    list[int] | None,
    typer.Option(min=1, max=65535, help="A port to fetch from besides 80, 443. Repeatable."),
]
ChatUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Answers in /v1/realtime: a base address of OpenAI's shape."),
]
TranscriptionUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Hears words in /v1/realtime: a base address, too."),
]
ReplicaAddresses = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST:PORT", help="Serve a replica's models instead of some here. Repeatable."
    ),
]
RayCluster = Annotated[
    str | None,
    typer.Option(
        metavar="auto|HOST:PORT",
        help="Run the models on this Ray cluster, where they stay when the server ends.",
    ),
]
