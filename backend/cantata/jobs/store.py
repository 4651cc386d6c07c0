"""Jobs on disk: a SQLite file for what is known of them, and a folder for the sound of each. Files
and batches (`files`, `batches`) are kept beside them.

A sentence counts once its row says so. Its sound is appended to its chapter's file and flushed
before that; what a file has beyond the rows was cut off in the middle, and is made again.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from cantata.contract.data.errors import JobEnded, JobNotFound, JobsFull
from cantata.jobs import rows
from cantata.jobs.database import JobDatabase
from cantata.jobs.job import (
    HeardWords,
    Job,
    JobEvent,
    JobFile,
    JobLimits,
    JobSentence,
    JobStatus,
    NewJob,
    SoundShape,
    SpokenSentence,
)
from cantata.jobs.records import count_rows, insert_row, select_rows

_SECONDS_PER_CHARACTER = 0.07
_BYTES_PER_SAMPLE = 2
Clock = Callable[[], float]


class JobStopped(Exception):
    """The job was cancelled or deleted meanwhile."""


class JobStore:
    """The jobs of one folder.

    Args:
        folder: the first job makes it.
        clock: Unix time.
    """

    def __init__(self, folder: Path, limits: JobLimits, clock: Clock = time.time) -> None:
        self.folder = folder
        self.limits = limits
        self.clock = clock
        self.database = JobDatabase(folder)
        """Of all that is kept in the folder."""
        self._changes = 0
        self._changed = asyncio.Condition()

    @property
    def exists(self) -> bool:
        """Whether there are jobs from an earlier time."""
        return self.database.exists

    @property
    def changes(self) -> int:
        """Grows with every change."""
        return self._changes

    async def wait(self, changes: int) -> None:
        """Wait until there have been more changes than these."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._changes > changes)

    async def tell(self) -> None:
        """Wake those who wait for a change."""
        async with self._changed:
            self._changes += 1
            self._changed.notify_all()

    async def close(self) -> None:
        """Let others have the folder."""
        await self.database.close()

    async def add(self, new: NewJob) -> Job:
        """Keep a job; it is queued.

        Raises:
            JobsFull: there are too many of this client, or of all.
            StorageFailed: it cannot be written.
        """
        id = f"job_{uuid.uuid4().hex}"
        reserved = _estimate_bytes(new)

        def work(db: sqlite3.Connection) -> Job:
            if count_rows(db, "jobs", new.owner) >= self.limits.per_owner:
                raise JobsFull(f"{self.limits.per_owner} jobs are kept at most; delete one first")
            if rows.count_bytes(db) + reserved > self.limits.max_bytes:
                raise JobsFull(
                    f"this job would need about {reserved >> 20} MiB, and all jobs and files "
                    f"together have at most {self.limits.max_bytes >> 20} MiB; delete some first"
                )
            rows.insert_job(db, id, new, self.clock(), reserved)
            rows.add_event(db, id, {"type": "job.queued"})
            sound = self.find_folder(id)
            sound.mkdir(mode=0o700)
            if new.cover:
                (sound / "cover").write_bytes(new.cover)
            return _select(db, id)

        job = await self.database.run(work)
        await self.tell()
        return job

    async def list_all(self, owner: str) -> list[Job]:
        """The jobs of a client, the newest first."""
        return await self.database.run(lambda db: rows.select_jobs(db, owner))

    async def find(self, id: str, owner: str | None = None) -> Job:
        """A job; `owner`: only if it is this client's. Raises JobNotFound: there is none."""
        job = await self.database.run(lambda db: _select(db, id))
        if owner is not None and job.owner != owner:
            raise JobNotFound(f"no job {id!r}", "id")
        return job

    async def list_open(self) -> list[str]:
        """Ids of the jobs that are not done, the oldest first."""

        def work(db: sqlite3.Connection) -> list[str]:
            final = [one.value for one in JobStatus if one.is_final]
            marks = ",".join("?" * len(final))
            found = db.execute(
                f"SELECT id FROM jobs WHERE status NOT IN ({marks}) ORDER BY created_at, id", final
            )
            return [id for (id,) in found]

        return await self.database.run(work)

    async def list_unspoken(self, id: str, limit: int) -> list[JobSentence]:
        return await self.database.run(lambda db: rows.select_unspoken(db, id, limit))

    async def keep_sound(
        self, id: str, shape: SoundShape, sentence: JobSentence, spoken: SpokenSentence
    ) -> None:
        """Keep what was spoken, with the silence before it.

        Raises:
            JobStopped: the job does not go on.
            StorageFailed: it cannot be written.
        """
        silence = round(sentence.pause_s * shape.sample_rate)
        length = silence + len(spoken.samples)
        before_s = silence / shape.sample_rate
        heard = spoken.heard or HeardWords(0)
        pad = np.zeros((silence, shape.channels), np.int16)
        data = np.concatenate([pad, spoken.samples]).astype("<i2").tobytes()

        def work(db: sqlite3.Connection) -> None:
            _check_open(db, id)
            kept = db.execute(
                "SELECT coalesce(sum(samples), 0) FROM sentences WHERE job = ? AND chapter = ?",
                (id, sentence.chapter),
            ).fetchone()[0]
            path = self.find_sound(id, sentence.chapter)
            write_at(path, kept * shape.channels * _BYTES_PER_SAMPLE, data)
            db.execute(
                "UPDATE sentences SET samples = ?, words = ?, skipped = ?, words_verified = ?,"
                " words_missing = ?, words_extra = ? WHERE job = ? AND number = ?",
                (
                    *(length, rows.dump_words(spoken.words, before_s), spoken.skipped),
                    *(heard.words, len(heard.missing), len(heard.extra)),
                    *(id, sentence.number),
                ),
            )
            job = _select(db, id)
            event: dict[str, object] = {
                "type": "job.progress",
                "spoken": job.spoken,
                "sentences": job.sentences,
                "seconds": round(job.seconds, 3),
                "chapter": sentence.chapter + 1,
            }
            if spoken.skipped:
                event |= {"skipped": sentence.text[:200], "reason": spoken.skipped}
            if heard.missing or heard.extra:
                event |= {"text": sentence.text[:200]}
                event |= {"missing": list(heard.missing), "extra": list(heard.extra)}
            rows.add_event(db, id, event)

        await self.database.run(work)
        await self.tell()

    async def set_status(self, id: str, status: JobStatus) -> None:
        """Say how far a job is. Raises JobStopped: it was cancelled or deleted."""

        def work(db: sqlite3.Connection) -> None:
            _check_open(db, id)
            db.execute("UPDATE jobs SET status = ? WHERE id = ?", (status, id))
            rows.add_event(db, id, {"type": f"job.{status}"})

        await self.database.run(work)
        await self.tell()

    async def end(
        self,
        id: str,
        status: JobStatus,
        files: tuple[JobFile, ...] = (),
        error: tuple[str, str] = ("", ""),
    ) -> None:
        """End a job, whose sound is then kept only in its files.

        Args:
            status: a final one.
            files: in the folder of `find_results`.
            error: code and message.

        Raises:
            JobStopped: it has ended already.
        """
        now = self.clock()

        def work(db: sqlite3.Connection) -> None:
            _check_open(db, id)
            db.execute(
                "UPDATE jobs SET status = ?, ended_at = ?, expires_at = ?, error_code = ?,"
                " error = ? WHERE id = ?",
                (status, now, now + self.limits.expires_s, *error, id),
            )
            for number, file in enumerate(files):
                insert_row(db, "files", {"job": id, "number": number} | asdict(file))
            event: dict[str, object] = {"type": f"job.{status}"}
            if error[0]:
                event |= {"code": error[0], "message": error[1]}
            rows.add_event(db, id, event)

        await self.database.run(work)
        await asyncio.to_thread(self._drop_sound, id)
        await self.tell()

    async def cancel(self, id: str, owner: str) -> Job:
        """Cancel a job.

        Raises:
            JobNotFound: there is none.
            JobEnded: it is done.
        """
        job = await self.find(id, owner)
        try:
            await self.end(id, JobStatus.CANCELLED)
        except JobStopped:
            raise JobEnded(f"the job {id} has ended: {job.status}", "id") from None
        return await self.find(id)

    async def delete(self, id: str, owner: str | None = None) -> None:
        """Delete a job with all its files, whatever it is doing. Raises JobNotFound: there is
        none."""
        await self.find(id, owner)
        await self.database.run(lambda db: db.execute("DELETE FROM jobs WHERE id = ?", (id,)))
        await asyncio.to_thread(shutil.rmtree, self.find_folder(id), ignore_errors=True)
        await self.tell()

    async def delete_expired(self) -> int:
        """Delete the jobs whose time has come; returns how many."""
        now = self.clock()
        found = await self.database.run(
            lambda db: db.execute("SELECT id FROM jobs WHERE expires_at <= ?", (now,)).fetchall()
        )
        for (id,) in found:
            await self.delete(id)
        return len(found)

    async def list_events(self, id: str, after: int, limit: int = 1_000) -> list[JobEvent]:
        """The events of a job that follow one, by its id; 0 is before the first."""
        query = "SELECT id, data FROM events WHERE job = ? AND id > ? ORDER BY id LIMIT ?"
        return await self.database.run(
            lambda db: select_rows(db, JobEvent, query, (id, after, limit))
        )

    def find_folder(self, id: str) -> Path:
        return self.folder / id

    def find_sound(self, id: str, chapter: int) -> Path:
        """The bare samples of a chapter, signed 16 bit, little endian; may not be there."""
        return self.find_folder(id) / f"{chapter:05}.pcm"

    def find_results(self, id: str) -> Path:
        return self.find_folder(id) / "files"

    def _drop_sound(self, id: str) -> None:
        for path in self.find_folder(id).glob("*.pcm"):
            path.unlink(missing_ok=True)


def write_at(path: Path, place: int, data: bytes) -> None:
    """Write what follows the first `place` bytes of a file, and see it on the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.truncate(place)
        file.seek(place)
        file.write(data)
        file.flush()
        os.fdatasync(file.fileno())


def _select(db: sqlite3.Connection, id: str) -> Job:
    job = rows.select_job(db, id)
    if job is None:
        raise JobNotFound(f"no job {id[:100]!r}", "id")
    return job


def _check_open(db: sqlite3.Connection, id: str) -> None:
    row = db.execute("SELECT status FROM jobs WHERE id = ?", (id,)).fetchone()
    if row is None or JobStatus(row[0]).is_final:
        raise JobStopped


def _estimate_bytes(new: NewJob) -> int:
    characters = sum(len(one.text) for one in new.sentences)
    rate = new.shape.sample_rate * new.shape.channels * _BYTES_PER_SAMPLE
    return round(characters * _SECONDS_PER_CHARACTER * rate) + len(new.cover)
