"""Options of `cantata bench`: the loads, and what is measured."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Transport(StrEnum):
    """The protocol of the measured requests."""

    WEBSOCKET = "websocket"
    HTTP = "http"
    BOTH = "both"


class Texts(StrEnum):
    """The length of the texts that are spoken."""

    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"
    MIXED = "mixed"


Streams = Annotated[
    list[int],
    typer.Option(min=1, help="Load: this many streams at a time (closed loop). Repeatable."),
]
Rates = Annotated[
    list[float],
    typer.Option(
        min=0,
        help="Load: this many requests per second, however long each takes (open loop); 0 for "
        "none. Repeatable.",
    ),
]
Stampede = Annotated[
    bool,
    typer.Option(help="Load: three times the largest --streams, all arriving within two seconds."),
]
Transports = Annotated[
    Transport, typer.Option(help="Send requests over WebSocket, HTTP, or each in turn.")
]
TextLengths = Annotated[Texts, typer.Option(help="Length of the texts.")]
Seconds = Annotated[float, typer.Option(min=1, help="How long to measure each load, in seconds.")]
WarmUp = Annotated[float, typer.Option(min=0, help="Seconds of each load before measuring begins.")]
Seed = Annotated[int, typer.Option(help="Random seed for the texts and the arrival times.")]
MeasuredModel = Annotated[
    str | None, typer.Option(help="Model's name or checkpoint folder (with --url, a name).")
]
Url = Annotated[
    str | None,
    typer.Option(help="Measure a running server instead of starting one; any vendor's."),
]
ApiKey = Annotated[
    str | None, typer.Option(envvar="CANTATA_API_KEY", help="API key to send to --url.")
]
Voices = Annotated[
    list[str] | None,
    typer.Option(help="Voice to request from --url; several take turns. Repeatable."),
]
HonourRetryAfter = Annotated[
    bool,
    typer.Option(help="Retry requests rejected with 429 when `retry-after` says; or give up."),
]
Baseline = Annotated[bool, typer.Option(help="Also measure the bare model, without a server.")]
BatchMode = Annotated[bool, typer.Option(help="Also measure a server with `async_chunk: false`.")]
LongMinutes = Annotated[
    float, typer.Option(min=0, help="Also speak one text of this many minutes; 0 for none.")
]
Asr = Annotated[
    bool, typer.Option(help="Also measure the word error rate (needs the extra `bench`).")
]
