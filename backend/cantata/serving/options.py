"""Types of the commands' options. Quick to import."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from cantata.utils.logs import LogFormat

MODELS, ACCESS, VOICES, CONVERSATION, MACHINES, RUNNING = (
    "Models",
    "Access",
    "Voices and media",
    "Conversation",
    "Several machines",
    "Running",
)
"""Groups of options in the help."""


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
        rich_help_panel=MODELS,
    ),
]
DtypeOption = Annotated[
    Dtype | None,
    typer.Option(
        "--dtype",
        help="Number format of the weights; overrides the deployment.",
        rich_help_panel=MODELS,
    ),
]
Deployments = Annotated[
    list[Path] | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="Deployment file (YAML). Repeatable, in the order of --model.",
        rich_help_panel=MODELS,
    ),
]
IdleUnload = Annotated[
    float | None,
    typer.Option(
        min=1,
        metavar="SECONDS",
        help="Unload a model so long after its last request; the next one loads it again. "
        "Default: never.",
        rich_help_panel=MODELS,
    ),
]
ClusterKeyFile = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="File with the key that all machines share; or set CANTATA_CLUSTER_KEY.",
        rich_help_panel=MACHINES,
    ),
]
DrainTimeout = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="How long running requests may take to end after SIGTERM.",
        rich_help_panel=RUNNING,
    ),
]
LogLevels = Annotated[
    LogLevel, typer.Option(help="Log this level and more severe ones.", rich_help_panel=RUNNING)
]
LogFormats = Annotated[
    LogFormat,
    typer.Option(
        help="Log as text, or as JSON with one record per line.",
        rich_help_panel=RUNNING,
    ),
]
RequestLogFile = Annotated[
    Path | None,
    typer.Option(
        "--request-log",
        metavar="FILE",
        help="Write a line of JSON for each request here; - is standard output. No texts.",
        rich_help_panel=RUNNING,
    ),
]
TracesEndpoint = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Send OpenTelemetry traces to this collector (OTLP over HTTP): "
        "http://localhost:4318/v1/traces.",
        rich_help_panel=RUNNING,
    ),
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
        rich_help_panel=ACCESS,
    ),
]
NoAuth = Annotated[
    bool,
    typer.Option(
        "--no-auth",
        help="Allow clients on other machines without API keys.",
        rich_help_panel=ACCESS,
    ),
]
PrivateLists = Annotated[
    bool,
    typer.Option(
        "--private-lists",
        help="Require a key to list models and voices, too.",
        rich_help_panel=ACCESS,
    ),
]
AllowedOrigins = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ORIGIN",
        help="Site whose pages may use this server. Repeatable.",
        rich_help_panel=ACCESS,
    ),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Host name that clients may use for this server if it has no API keys. Repeatable.",
        rich_help_panel=ACCESS,
    ),
]
ModelAliases = Annotated[
    list[str] | None,
    typer.Option(
        "--alias",
        metavar="NAME=MODEL",
        help="Another name of a served model, for clients set up for another server. Repeatable.",
        rich_help_panel=MODELS,
    ),
]
MostPerKey = Annotated[
    int | None,
    typer.Option(
        min=1, help="Most requests that one API key may have open.", rich_help_panel=ACCESS
    ),
]
VoicesFolder = Annotated[
    Path | None,
    typer.Option(
        file_okay=False,
        help="Folder for uploaded voices. Default: in the user's data folder.",
        rich_help_panel=VOICES,
    ),
]
VoicesUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Keep uploaded voices here instead, shared by several servers: any URL of fsspec "
        "(s3://...).",
        rich_help_panel=VOICES,
    ),
]
VoiceConsent = Annotated[
    Literal["none", "attest", "spoken"],
    typer.Option(
        "--voice-consent",
        help="What a recording of a speaker needs: the client's word, the name of a person who "
        "answers for it, or a statement in the speaker's own voice.",
        rich_help_panel=VOICES,
    ),
]
ProvenanceMode = Annotated[
    Literal["off", "tags", "signed"],
    typer.Option(
        "--provenance",
        help="Whether files of pictures and sound say that a model made them: in tags, or also "
        "in a signed C2PA manifest.",
        rich_help_panel=RUNNING,
    ),
]
SigningCertificate = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="PEM file of the certificate that signs files, and of those that lead to its root.",
        rich_help_panel=RUNNING,
    ),
]
SigningKey = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="PEM file of the certificate's key, without a password.",
        rich_help_panel=RUNNING,
    ),
]
Watermark = Annotated[
    bool,
    typer.Option(
        "--watermark",
        help="Put an inaudible mark into the samples of speech, which cantata verify finds.",
        rich_help_panel=RUNNING,
    ),
]
WatermarkKey = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="File with the mark's key, 16 bytes or more. Default: one that everybody knows.",
        rich_help_panel=RUNNING,
    ),
]
TimestampUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="RFC 3161 authority that is asked for the time of every signature. Default: none.",
        rich_help_panel=RUNNING,
    ),
]
JobsFolder = Annotated[
    Path | None,
    typer.Option(
        file_okay=False,
        help="Folder for kept jobs, files and batches. Default: in the user's data folder.",
        rich_help_panel=VOICES,
    ),
]
JobsPerKey = Annotated[
    int,
    typer.Option(
        min=1, help="Most jobs, and most batches, of one API key.", rich_help_panel=ACCESS
    ),
]
JobsExpire = Annotated[
    float,
    typer.Option(
        "--jobs-expire",
        min=0,
        metavar="DAYS",
        help="How long a job or a batch is kept after its end, and a file.",
        rich_help_panel=VOICES,
    ),
]
Lexicons = Annotated[
    list[str] | None,
    typer.Option(
        "--lexicon",
        metavar="[VOICE=]NAME",
        help="Read the texts of a voice, or all, with this uploaded lexicon. Repeatable.",
        rich_help_panel=VOICES,
    ),
]
AllowRefUrls = Annotated[
    bool,
    typer.Option(
        "--allow-ref-urls",
        help="Fetch recordings and media from public URLs.",
        rich_help_panel=VOICES,
    ),
]
RefUrlPorts = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        max=65535,
        help="Port to fetch from besides 80 and 443. Repeatable.",
        rich_help_panel=VOICES,
    ),
]
ChatUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Server that answers in /v1/realtime: base URL of an OpenAI-compatible API.",
        rich_help_panel=CONVERSATION,
    ),
]
TranscriptionUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Server that transcribes in /v1/realtime: base URL of an OpenAI-compatible API.",
        rich_help_panel=CONVERSATION,
    ),
]
WebRtcPorts = Annotated[
    str | None,
    typer.Option(
        metavar="FIRST-LAST",
        help="UDP ports of calls over WebRTC, for a firewall to let through; else any.",
        rich_help_panel=CONVERSATION,
    ),
]
WebRtcAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Address at which clients reach those ports, if it is none of this machine's.",
        rich_help_panel=CONVERSATION,
    ),
]
ReplicaAddresses = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Serve the models of this replica instead of loading any here. Repeatable.",
        rich_help_panel=MACHINES,
    ),
]
RayCluster = Annotated[
    str | None,
    typer.Option(
        metavar="auto|HOST:PORT",
        help="Run the models on this Ray cluster. They stay there when the server ends.",
        rich_help_panel=MACHINES,
    ),
]
ChatModelName = Annotated[
    str | None, typer.Option(help="Model to name to --chat-url.", rich_help_panel=CONVERSATION)
]
TranscriptionModelName = Annotated[
    str | None,
    typer.Option(help="Model to name to --transcription-url.", rich_help_panel=CONVERSATION),
]
SharePort = Annotated[
    bool,
    typer.Option(
        "--share-port",
        help="Let other servers listen on the same port.",
        rich_help_panel=RUNNING,
    ),
]
