"""Types of the commands' options. Quick to import."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cantata.utils.logs import LogFormat


class Dtype(StrEnum):
    """The number format that a model computes in."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


class LogLevel(StrEnum):
    """The least severe level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class TranscriptForm(StrEnum):
    """How `cantata transcribe` writes."""

    TXT = "txt"
    SRT = "srt"
    VTT = "vtt"
    JSON = "json"


class Form(StrEnum):
    """What `cantata deploy --print` prints."""

    SERVE = "serve"
    """A configuration for `serve deploy` or Ray's REST interface."""
    KUBERNETES = "kubernetes"
    """A RayService for KubeRay, and a Service in front of the edges."""


Models = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME_OR_CHECKPOINT",
        help="Model to run: a name or a checkpoint folder. Repeatable. Default: all models that "
        "ship with weights.",
    ),
]
Deployments = Annotated[
    list[Path] | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="Deployment file (YAML). Repeatable, in the order of --model.",
    ),
]
ClusterKeyFile = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="File with the key that all machines share; or set CANTATA_CLUSTER_KEY.",
    ),
]
DrainTimeout = Annotated[
    float,
    typer.Option(
        min=0, metavar="SECONDS", help="How long running requests may take to end after SIGTERM."
    ),
]
LogLevels = Annotated[LogLevel, typer.Option(help="Log this level and more severe ones.")]
LogFormats = Annotated[
    LogFormat, typer.Option(help="Log as text, or as JSON with one record per line.")
]
WyomingPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Also serve Wyoming (Home Assistant), usually on 10200."),
]
ApiKeyFile = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="File with one API key per line; or set CANTATA_API_KEYS, comma-separated.",
    ),
]
NoAuth = Annotated[
    bool, typer.Option("--no-auth", help="Allow clients on other machines without API keys.")
]
PrivateLists = Annotated[
    bool, typer.Option("--private-lists", help="Require a key to list models and voices, too.")
]
AllowedOrigins = Annotated[
    list[str] | None,
    typer.Option(metavar="ORIGIN", help="Site whose pages may use this server. Repeatable."),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Host name that clients may use for this server if it has no API keys. Repeatable.",
    ),
]
ModelAliases = Annotated[
    list[str] | None,
    typer.Option(
        "--alias",
        metavar="NAME=MODEL",
        help="Another name of a served model, for clients set up for another server. Repeatable.",
    ),
]
MostPerKey = Annotated[
    int | None, typer.Option(min=1, help="Most requests that one API key may have open.")
]
VoicesFolder = Annotated[
    Path | None,
    typer.Option(
        file_okay=False, help="Folder for uploaded voices. Default: in the user's data folder."
    ),
]
VoicesUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Keep uploaded voices here instead, shared by several servers: any URL of fsspec "
        "(s3://...).",
    ),
]
AllowRefUrls = Annotated[
    bool,
    typer.Option("--allow-ref-urls", help="Fetch recordings and media from public URLs."),
]
RefUrlPorts = Annotated[
    list[int] | None,
    typer.Option(min=1, max=65535, help="Port to fetch from besides 80 and 443. Repeatable."),
]
ChatUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Server that answers in /v1/realtime: base URL of an OpenAI-compatible API.",
    ),
]
TranscriptionUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Server that transcribes in /v1/realtime: base URL of an OpenAI-compatible API.",
    ),
]
ReplicaAddresses = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Serve the models of this replica instead of loading any here. Repeatable.",
    ),
]
RayCluster = Annotated[
    str | None,
    typer.Option(
        metavar="auto|HOST:PORT",
        help="Run the models on this Ray cluster. They stay there when the server ends.",
    ),
]
