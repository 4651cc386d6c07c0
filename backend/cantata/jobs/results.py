"""The files of a job: a book as a whole, or a file for each chapter; captions beside them.

A process of its own writes them (`jobs.writing`). WHY: to encode a book is a minute of work in many
small steps. A thread of this process would hold Python's lock meanwhile, and whenever a busy core
takes its turn away while it does, nothing here goes on: live streams waited for up to 0.7 s.
"""

from __future__ import annotations

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from cantata.audio.formats import output_format
from cantata.contract.data.errors import InvalidRequest, NotStored, RequestFailed
from cantata.jobs.audiobook import MEDIA_TYPE
from cantata.jobs.epub_book import EPUB_TYPE
from cantata.jobs.job import Job, JobFile, SoundShape
from cantata.jobs.store import JobStore

WHOLE_BOOK, READ_ALONG = "m4b", "epub"
WHOLE = {WHOLE_BOOK: MEDIA_TYPE, READ_ALONG: EPUB_TYPE}
"""Formats that hold all chapters in one file, and their media types: sound with chapters, and the
text with its sound."""
CAPTIONS = {"srt": "application/x-subrip", "vtt": "text/vtt"}
"""Formats of captions, and their media types."""
NICENESS = 10
"""Of what writes files: live streams need the cores more."""
_MAX_START_S = 600.0
"""That a writer may take beside a second for each of sound, on the busiest machine."""


class ResultSigner(Protocol):
    def takes(self, media_type: str) -> bool: ...

    def sign_file(self, path: Path, media_type: str) -> None:
        """Sign a file in its place; blocks.

        Raises:
            RequestFailed: not now.
            OSError: the disk does not take it.
        """
        ...


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """Which files a job has."""

    form: str
    """One of `FORMATS`, or of `WHOLE`."""
    sample_rate: int | None = None
    """Hz; None: the model's, or the next that the format has."""
    captions: str | None = None
    """One of `CAPTIONS`; None: none."""
    tags: tuple[tuple[str, str], ...] = ()
    """That say who made them."""


def check_results(options: ResultOptions, shape: SoundShape) -> None:
    """Check before the work is done whether such files can be written. Raises InvalidRequest: the
    format cannot have this sample rate, not so many channels, or no captions."""
    form = options.form
    if form in WHOLE and options.sample_rate is not None:
        raise InvalidRequest(
            f"sample_rate: {form} has the model's own; leave it out", "sample_rate"
        )
    if form == READ_ALONG and options.captions is not None:
        raise InvalidRequest("captions: an epub shows its text itself; leave them out", "captions")
    form = "aac" if form in WHOLE else form
    output_format(form, shape.sample_rate, shape.channels, options.sample_rate)


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """What the process that writes says at its end."""

    files: tuple[JobFile, ...] = ()
    error: str = ""
    """Why the disk did not take them; empty: it did."""


async def write_results(
    store: JobStore, job: Job, options: ResultOptions, signer: ResultSigner | None = None
) -> tuple[JobFile, ...]:
    """Write all files of a job that is spoken, instead of those of an attempt that was cut off.

    Args:
        job: all of whose sentences are spoken.

    Raises:
        NotStored: the disk does not take them, they cannot be signed now, or the process that
            writes them was ended or takes too long.
        RequestFailed: they cannot be written at all.
    """
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "cantata.jobs.writing", store.folder.absolute(), job.id),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert child.stdin is not None
    try:
        async with asyncio.timeout(_MAX_START_S + job.seconds):
            child.stdin.write(msgspec.json.encode(options) + b"\n")
            # The pipe stays open: the process ends with this one, whatever ends that.
            said, complaint = await _hear_out(child)
    except TimeoutError:
        raise NotStored("the files take too long to write") from None
    finally:
        if child.returncode is None:
            child.kill()
        child.stdin.close()
        status = await child.wait()
    if status < 0:
        raise NotStored(f"the files cannot be written now: signal {-status} ended that")
    if status:
        last = complaint.decode(errors="replace").strip().rpartition("\n")[2][:200]
        raise RequestFailed(f"the files cannot be written: {last}")
    written = msgspec.json.decode(said, type=WrittenFiles)
    if written.error:
        raise NotStored(f"the files cannot be written: {written.error}")
    if signer is None:
        return written.files
    return await _sign(signer, store.find_results(job.id), written.files)


async def _hear_out(child: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    """All that a process says."""
    assert child.stdout is not None
    assert child.stderr is not None
    said = await asyncio.gather(child.stdout.read(), child.stderr.read(), child.wait())
    return said[0], said[1]


async def _sign(
    signer: ResultSigner, folder: Path, files: tuple[JobFile, ...]
) -> tuple[JobFile, ...]:
    """Sign those files that can be signed, in a thread that yields to all others."""
    thread = ThreadPoolExecutor(1, "signing", initializer=os.nice, initargs=(NICENESS,))
    loop = asyncio.get_running_loop()
    signing = loop.run_in_executor(thread, partial(_sign_all, signer, folder, files))
    try:
        return await asyncio.shield(signing)
    except asyncio.CancelledError:
        await asyncio.wait([signing])  # the thread uses files that others may delete
        raise
    finally:
        thread.shutdown()


def _sign_all(
    signer: ResultSigner, folder: Path, files: tuple[JobFile, ...]
) -> tuple[JobFile, ...]:
    signed = list[JobFile]()
    for one in files:
        if signer.takes(one.media_type):
            path = folder / one.name
            try:
                signer.sign_file(path, one.media_type)
            except RequestFailed as error:
                # What was spoken in hours waits for another certificate.
                raise NotStored(error.message) from error
            except OSError as error:
                raise NotStored(f"the files cannot be written: {error.strerror}") from error
            one = settle_file(path, one.media_type)
        signed.append(one)
    return tuple(signed)


def settle_file(path: Path, media_type: str) -> JobFile:
    """See a file on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fdatasync(handle)
        return JobFile(path.name, media_type, os.fstat(handle).st_size)
    finally:
        os.close(handle)
