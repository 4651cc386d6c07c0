"""Recordings uploaded at the same time, beside streams that must not stutter."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from time import monotonic

import httpx
import numpy as np
import soundfile

from cantata.config.plugins import list_embedded_models
from cantata_bench.client import Target
from cantata_bench.load import measured_load
from cantata_bench.machine import in_own_process
from cantata_bench.results import LoadSpec, LoadSummary
from cantata_bench.server import running_server
from cantata_bench.summary import summarize
from cantata_bench.tables import table
from cantata_bench.transcription.recordings import (
    RATE_HZ,
    ReadSentence,
    join_without_break,
    read_aloud,
)
from cantata_bench.transcription.run import count_errors
from cantata_bench.voice_quality.run import read_sentences

_SENTENCES = 2
"""Of one recording."""
_WAIT_S = 600.0
_STREAM_VOICE = "clara"


@dataclass(frozen=True, slots=True)
class UploadFigures:
    """Figures of all uploads of a run."""

    done_s: tuple[float, ...]
    """Seconds from each upload's first request to its transcript."""
    seconds: float
    """Of sound, all recordings together."""
    rejected: int
    """Answers with 429; each was sent again after `retry-after`."""
    words: int
    errors: int

    @property
    def wer(self) -> float:
        """Word error rate in percent."""
        return 100 * self.errors / max(self.words, 1)


@dataclass(frozen=True, slots=True)
class BesideUploads:
    """The same live streams, without and with uploads."""

    alone: LoadSummary
    beside: LoadSummary
    uploads: UploadFigures


def measure_uploads(
    uploads: int, streams: int, seconds: float, folder: Path, tell: Callable[[str], None]
) -> BesideUploads:
    """Start a server, measure live streams, and measure them again beside uploads.

    Args:
        uploads: sent at the same time, when the streams speak.
        streams: play their texts in real time.
        seconds: of each measurement.
        folder: takes the server's log.
        tell: gets a line of progress.

    Raises:
        RuntimeError: the server did not start, or nothing was spoken.
    """
    spec = LoadSpec(kind="live", streams=streams, seconds=seconds)
    options = [option for model in list_embedded_models() for option in ("--model", model)]
    with running_server(folder / "uploads.log", options=options) as server:
        target = Target(server.url, voices=(_STREAM_VOICE,))
        texts = [sentence.text for sentence in read_sentences(None)[:_SENTENCES]]
        spoken = join_without_break([read_aloud(server.url, "heart", text) for text in texts])
        asyncio.run(_send_uploads(server.url, spoken, 1))  # loads the recognizer
        tell(f"{streams} live streams")
        alone = _summarize(spec, target)
        tell(f"{streams} live streams beside {uploads} uploads")
        with ThreadPoolExecutor(1) as thread:
            uploading = thread.submit(_start_uploads, server.url, spoken, uploads, spec.warm_up_s)
            beside = _summarize(spec, target)
            return BesideUploads(alone, beside, uploading.result())


def make_uploads_table(found: BesideUploads) -> str:
    """Markdown."""
    head = ["", "TTFP p50 / p95", "C0", "throughput", "rejected with 429"]
    rows = [
        [
            name,
            f"{1000 * one.ttfp.p50:.0f} / {1000 * one.ttfp.p95:.0f} ms",
            f"{100 * one.continuous[0]:.1f}%",
            f"{one.throughput_x:.1f} x",
            str(one.refusals),
        ]
        for name, one in (("streams alone", found.alone), ("beside uploads", found.beside))
    ]
    uploads = found.uploads
    p50, p95 = np.percentile(np.array(uploads.done_s), [50, 95])
    return (
        f"{table(head, rows)}\n\n"
        f"{len(uploads.done_s)} uploads of {uploads.seconds / len(uploads.done_s):.0f} s each: "
        f"transcribed after {p50:.1f} s (p50) and {p95:.1f} s (p95), WER {uploads.wer:.1f}%, "
        f"{uploads.rejected} answers with 429 before."
    )


def _summarize(spec: LoadSpec, target: Target) -> LoadSummary:
    report = in_own_process(measured_load, spec, target, False)
    summary = summarize(report.records, report.audio_in_window_s / spec.seconds)
    if summary is None:
        raise RuntimeError("nothing was spoken")
    return summary


def _start_uploads(url: str, spoken: ReadSentence, uploads: int, after_s: float) -> UploadFigures:
    async def upload() -> UploadFigures:
        await asyncio.sleep(after_s)
        return await _send_uploads(url, spoken, uploads)

    return asyncio.run(upload())


async def _send_uploads(url: str, spoken: ReadSentence, uploads: int) -> UploadFigures:
    file = io.BytesIO()
    soundfile.write(file, spoken.sound, RATE_HZ, format="WAV")
    limits = httpx.Limits(max_connections=None)
    async with (
        httpx.AsyncClient(base_url=url, timeout=_WAIT_S, limits=limits) as http,
        asyncio.TaskGroup() as group,
    ):
        tasks = [group.create_task(_send_upload(http, file.getvalue())) for _ in range(uploads)]
    return _add_up(spoken, [task.result() for task in tasks])


async def _send_upload(http: httpx.AsyncClient, file: bytes) -> tuple[str, float, int]:
    """What was understood, after how many seconds, and how often it was rejected before."""
    began, rejected = monotonic(), 0
    async with asyncio.timeout(_WAIT_S):
        while True:
            answer = await http.post(
                "/v1/audio/transcriptions",
                files={"file": ("speech.wav", file)},
                data={"model": "whisper-1"},
            )
            if answer.status_code != HTTPStatus.TOO_MANY_REQUESTS:
                answer.raise_for_status()
                return answer.json()["text"], monotonic() - began, rejected
            rejected += 1
            await asyncio.sleep(float(answer.headers["retry-after"]))


def _add_up(spoken: ReadSentence, answers: Sequence[tuple[str, float, int]]) -> UploadFigures:
    counts = [count_errors(spoken.text, text) for text, _, _ in answers]
    return UploadFigures(
        done_s=tuple(done_s for _, done_s, _ in answers),
        seconds=len(answers) * len(spoken.sound) / RATE_HZ,
        rejected=sum(rejected for _, _, rejected in answers),
        words=sum(words for words, _ in counts),
        errors=sum(errors for _, errors in counts),
    )
