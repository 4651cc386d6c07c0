"""The whole server in a closed loop: each stream asks for its next text when one has arrived."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import yaml

from cantata_bench.first_packet import TIMEOUT_S, StreamTimes, hear
from cantata_bench.server import running_server
from cantata_models.qwen3_tts.plugin import PLUGIN

STREAMS, TINY_STREAMS = (1, 8, 16, 64), (1, 2)
FRAMES, TINY_FRAMES = 125, 10
"""Frames of each utterance; 125 are ten seconds."""
ROUNDS = 4
"""Utterances of each stream; the first is not counted."""
SERVER_LOG = "server.log"
MAX_MODEL_LEN = 1024
"""Ample for the text and the frames; memory for keys and values follows from it."""


@dataclass(frozen=True, slots=True)
class ServeRow:
    """Some streams at a time."""

    streams: int
    spoken: int
    refused: int
    ttfp_p50_ms: float | None
    """Milliseconds from the request to the first sound; None: nothing was spoken."""
    ttfp_p95_ms: float | None
    rtf_p50: float | None
    """Seconds from the request to the last sound, per second of sound."""
    audio_s_per_s: float
    """Sound of all streams together."""


def serve_and_measure(checkpoint: Path, device: str, tiny: bool, engine: str) -> Iterator[ServeRow]:
    """Start a server with both stages on the device and put one load after the other on it.

    Args:
        engine: of its talker.

    Raises:
        RuntimeError: the server did not start.
    """
    streams, frames = (TINY_STREAMS, TINY_FRAMES) if tiny else (STREAMS, FRAMES)
    with served(checkpoint, device, max(streams), engine) as url:
        for count in streams:
            yield asyncio.run(_closed_loop(url, count, frames))


@contextmanager
def served(checkpoint: Path, device: str, slots: int, engine: str) -> Iterator[str]:
    """The address of a server with both stages on the device. Its log is beside the checkpoint:
    `server.log`.

    Raises:
        RuntimeError: it did not start.
    """
    with tempfile.TemporaryDirectory() as folder:
        deploy = Path(folder) / "deploy.yaml"
        deploy.write_text(yaml.safe_dump(_deployment(device, slots, engine)), encoding="utf-8")
        options = ["--model", str(checkpoint), "--deploy", str(deploy)]
        with running_server(checkpoint / SERVER_LOG, options=options) as server:
            yield server.url


def _deployment(device: str, slots: int, engine: str) -> dict[str, Any]:
    """The model's own with room for every stream at once."""
    raw: dict[str, Any] = yaml.safe_load(PLUGIN.deployment.read_text(encoding="utf-8"))
    talker, codec = raw["stages"]["talker"], raw["stages"]["codec"]
    talker |= {"engine": engine, "device": device}
    talker |= {"slots": slots, "max_model_len": MAX_MODEL_LEN}
    codec |= {"device": device, "slots": slots, "max_batch_frames": max(32, 4 * slots)}
    return raw


async def _closed_loop(url: str, streams: int, frames: int) -> ServeRow:
    received: list[StreamTimes] = []
    limits = httpx.Limits(max_connections=streams)
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT_S, limits=limits) as http:

        async def stream(rounds: int) -> None:
            received.extend([await hear(http, frames) for _ in range(rounds)])

        await asyncio.gather(*(stream(1) for _ in range(streams)))
        received.clear()
        began = time.monotonic()
        await asyncio.gather(*(stream(ROUNDS - 1) for _ in range(streams)))
        wall_s = time.monotonic() - began
    return _summary(streams, received, wall_s)


def _summary(streams: int, received: list[StreamTimes], wall_s: float) -> ServeRow:
    spoken = [one for one in received if one.first_s is not None]
    first_ms = [1000 * one.first_s for one in spoken if one.first_s is not None]
    rtf = [one.whole_s / one.audio_s for one in spoken]
    return ServeRow(
        streams=streams,
        spoken=len(spoken),
        refused=len(received) - len(spoken),
        ttfp_p50_ms=statistics.median(first_ms) if first_ms else None,
        ttfp_p95_ms=float(np.percentile(first_ms, 95)) if first_ms else None,
        rtf_p50=statistics.median(rtf) if rtf else None,
        audio_s_per_s=sum(one.audio_s for one in spoken) / wall_s,
    )
