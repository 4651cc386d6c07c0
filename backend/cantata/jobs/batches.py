"""Batches on disk: rows in the database of jobs, answers in files beside it.

A line counts once its row says so. Its answer is appended to the batch's file and flushed before
that; what a file has beyond the rows was cut off in the middle, and is made again.
"""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from typing import TypeVar

from cantata.contract.data.errors import (
    BatchEnded,
    BatchNotFound,
    FileNotKept,
    InvalidRequest,
    JobsFull,
    NotStored,
)
from cantata.jobs.batch import (
    BatchLine,
    BatchStatus,
    FilePurpose,
    KeptBatch,
    KeptFile,
    LineAnswer,
    LineProblem,
    NewBatch,
)
from cantata.jobs.database import Work
from cantata.jobs.files import FileStore, make_file_id
from cantata.jobs.records import (
    ListPage,
    count_rows,
    insert_row,
    select_page,
    select_row,
    select_rows,
)
from cantata.jobs.rows import count_bytes
from cantata.jobs.store import JobStopped, JobStore, write_at

T = TypeVar("T")
WINDOW_S = 86_400.0
"""Seconds from a batch's beginning to its end, done or not."""
_UNANSWERED = {
    BatchStatus.EXPIRED: ("batch_expired", "this request was not answered within the batch's time"),
    BatchStatus.CANCELLED: ("batch_cancelled", "the batch was cancelled before this request"),
}
_BATCHES = """
SELECT id, owner, endpoint, input_file, metadata AS "metadata [json]", status, created_at,
    expires_at, times AS "times [json]", problems AS "problems [json]", total, completed, failed,
    iif(delete_at IS NOT NULL AND output_bytes, output_file, NULL) AS output_file,
    iif(delete_at IS NOT NULL AND error_bytes, error_file, NULL) AS error_file,
    json_object('input', input_tokens, 'cached', cached_tokens, 'output', output_tokens,
        'reasoning', reasoning_tokens) AS "usage [json]"
FROM batches"""
"""Files are named once the batch has ended, when they are its client's."""


class BatchStore:
    """The batches of a store's folder. `jobs`: whose folder, database and limits these are."""

    def __init__(self, jobs: JobStore, files: FileStore) -> None:
        self._jobs = jobs
        self.files = files

    async def add(self, new: NewBatch) -> KeptBatch:
        """Keep a batch; it is to be validated.

        Raises:
            FileNotKept: the client has no such file.
            InvalidRequest: the file is for something else.
            JobsFull: the client has too many batches.
            StorageFailed: it cannot be written.
        """
        id, limits, now = f"batch_{uuid.uuid4().hex}", self._jobs.limits, self._jobs.clock()
        try:
            file = await self.files.find(new.input_file, new.owner)
        except FileNotKept as error:
            raise FileNotKept(error.message, "input_file_id") from None
        if file.purpose is not FilePurpose.BATCH:
            raise InvalidRequest(
                f"input_file_id: {file.id} is for {str(file.purpose)!r}; upload it with the "
                "purpose 'batch'",
                "input_file_id",
            )

        def work(db: sqlite3.Connection) -> KeptBatch:
            if count_rows(db, "batches", new.owner) >= limits.per_owner:
                raise JobsFull(f"{limits.per_owner} batches are kept at most; try again later")
            row = asdict(new) | {
                "id": id,
                "output_file": make_file_id(),
                "error_file": make_file_id(),
                "metadata": json.dumps(new.metadata),
                "status": BatchStatus.VALIDATING,
                "created_at": now,
                "expires_at": now + WINDOW_S,
                "times": "{}",
            }
            insert_row(db, "batches", row)
            return _select(db, id)

        return await self._change(work)

    async def find(self, id: str, owner: str | None = None) -> KeptBatch:
        """A batch; `owner`: only if it is this client's. Raises BatchNotFound: there is none."""
        return await self._jobs.database.run(lambda db: _select(db, id, owner))

    async def list_page(self, owner: str, page: ListPage) -> tuple[list[KeptBatch], bool]:
        """Batches of a client, and whether there are more. Raises BatchNotFound: the page is to
        follow a batch that is not there."""

        def work(db: sqlite3.Connection) -> tuple[list[KeptBatch], bool]:
            if page.after is not None:
                _select(db, page.after, owner)
            return select_page(db, KeptBatch, _BATCHES, "batches", page, owner=owner)

        return await self._jobs.database.run(work)

    async def list_open(self) -> list[str]:
        """Ids of the batches that are not done, the oldest first."""
        rows = "SELECT id FROM batches WHERE delete_at IS NULL ORDER BY number"
        found = await self._jobs.database.run(lambda db: db.execute(rows).fetchall())
        return [id for (id,) in found]

    async def begin(self, id: str, lines: Sequence[BatchLine]) -> None:
        """Keep the lines of a batch that is valid; they are to be answered. Raises JobStopped: it
        was cancelled."""

        def work(db: sqlite3.Connection) -> None:
            _check_status(db, id, BatchStatus.VALIDATING)
            for line in lines:
                insert_row(db, "batch_lines", {"batch": id} | asdict(line))
            db.execute("UPDATE batches SET total = ? WHERE id = ?", (len(lines), id))
            _set_status(db, id, BatchStatus.IN_PROGRESS, self._jobs.clock())

        await self._change(work)

    async def list_unanswered(self, id: str, after: int, limit: int) -> list[BatchLine]:
        """The next lines behind one, by its number; 0 is before the first."""
        return await self._jobs.database.run(lambda db: _list_unanswered(db, id, after, limit))

    async def keep_answer(self, id: str, line: BatchLine, answer: LineAnswer) -> None:
        """Keep what a line was answered.

        Raises:
            JobStopped: the batch does not go on.
            StorageFailed: it cannot be written, or there is no room.
        """
        response = b'{"status_code": %d, "request_id": %s, "body": %s}' % (
            *(answer.status, json.dumps(answer.request_id).encode()),
            answer.body.replace(b"\n", b" "),  # between values: texts have none in JSON
        )
        data = _write_line(line.custom_id, response, b"null")
        used, count, size, file = (answer.usage, "completed", "output_bytes", "output_file")
        if not answer.is_success:
            count, size, file = ("failed", "error_bytes", "error_file")

        def work(db: sqlite3.Connection) -> None:
            _check_status(db, id, BatchStatus.IN_PROGRESS)
            limit = self._jobs.limits.max_bytes
            if count_bytes(db) + len(data) > limit:
                raise NotStored(f"all jobs and files have their {limit >> 20} MiB; delete some")
            self._append(db, id, file, size, data)
            db.execute(
                f"UPDATE batches SET {count} = {count} + 1, input_tokens = input_tokens + ?,"
                " cached_tokens = cached_tokens + ?, output_tokens = output_tokens + ?,"
                " reasoning_tokens = reasoning_tokens + ? WHERE id = ?",
                (used.input, used.cached, used.output, used.reasoning, id),
            )
            db.execute(
                "UPDATE batch_lines SET answered = 1 WHERE batch = ? AND number = ?",
                (id, line.number),
            )

        await self._change(work)

    async def set_finalizing(self, id: str) -> None:
        """Say that all lines are answered. Raises JobStopped: it was cancelled."""

        def work(db: sqlite3.Connection) -> None:
            _check_status(db, id, BatchStatus.IN_PROGRESS)
            _set_status(db, id, BatchStatus.FINALIZING, self._jobs.clock())

        await self._change(work)

    async def cancel(self, id: str, owner: str) -> KeptBatch:
        """Have a batch end with the answers that it has.

        Raises:
            BatchNotFound: there is none.
            BatchEnded: it is done.
        """

        def work(db: sqlite3.Connection) -> KeptBatch:
            batch = _select(db, id, owner)
            if batch.status.is_final or batch.status is BatchStatus.FINALIZING:
                raise BatchEnded(f"the batch {id} has ended: {batch.status}", "batch_id")
            if batch.status is not BatchStatus.CANCELLING:
                _set_status(db, id, BatchStatus.CANCELLING, self._jobs.clock())
            return _select(db, id)

        return await self._change(work)

    async def end(self, id: str, status: BatchStatus, problems: Sequence[LineProblem] = ()) -> None:
        """End a batch: its files are there from then on.

        Args:
            status: a final one.

        Raises:
            StorageFailed: what was not answered cannot be written.
        """
        now = self._jobs.clock()

        def work(db: sqlite3.Connection) -> None:
            if status in _UNANSWERED:
                code, message = _UNANSWERED[status]
                error = json.dumps({"code": code, "message": message}).encode()
                left = _list_unanswered(db, id, 0, -1)
                lines = (_write_line(one.custom_id, b"null", error) for one in left)
                self._append(db, id, "error_file", "error_bytes", b"".join(lines))
            self._publish(db, id, now)
            _set_status(db, id, status, now)
            db.execute("DELETE FROM batch_lines WHERE batch = ?", (id,))
            db.execute(
                "UPDATE batches SET problems = ?, delete_at = ? WHERE id = ?",
                (
                    json.dumps([asdict(one) for one in problems]),
                    *(now + self._jobs.limits.expires_s, id),
                ),
            )

        await self._change(work)

    async def delete_expired(self) -> None:
        """Delete the batches whose time has come; their files have times of their own."""
        now = self._jobs.clock()
        await self._jobs.database.run(
            lambda db: db.execute("DELETE FROM batches WHERE delete_at <= ?", (now,))
        )

    async def _change(self, work: Work[T]) -> T:
        result = await self._jobs.database.run(work)
        await self._jobs.tell()
        return result

    def _append(self, db: sqlite3.Connection, id: str, file: str, size: str, data: bytes) -> None:
        """Append to a file of a batch; `file`, `size`: the columns of its id and its bytes."""
        row = db.execute(f"SELECT {file}, {size} FROM batches WHERE id = ?", (id,)).fetchone()
        write_at(self.files.find_path(row[0]), row[1], data)
        db.execute(f"UPDATE batches SET {size} = {size} + ? WHERE id = ?", (len(data), id))

    def _publish(self, db: sqlite3.Connection, id: str, now: float) -> None:
        """Make the files of a batch files of its client."""
        columns = "owner, output_file, output_bytes, error_file, error_bytes, output_expires_s"
        owner, output, size, errors, error_size, expires_s = db.execute(
            f"SELECT {columns} FROM batches WHERE id = ?", (id,)
        ).fetchone()
        expires_at = now + (self._jobs.limits.expires_s if expires_s is None else expires_s)
        for file, kind, length in ((output, "output", size), (errors, "error", error_size)):
            path = self.files.find_path(file)
            if not length:
                path.unlink(missing_ok=True)
            else:
                os.truncate(path, length)  # of what was cut off in the middle
                name = f"{id}_{kind}.jsonl"
                kept = KeptFile(
                    file, owner, FilePurpose.BATCH_OUTPUT, name, length, now, expires_at
                )
                insert_row(db, "stored_files", asdict(kept))


def _write_line(custom_id: str, response: bytes, error: bytes) -> bytes:
    return b'{"id": "batch_req_%s", "custom_id": %s, "response": %s, "error": %s}\n' % (
        *(uuid.uuid4().hex.encode(), json.dumps(custom_id).encode()),
        *(response, error),
    )


def _list_unanswered(db: sqlite3.Connection, id: str, after: int, limit: int) -> list[BatchLine]:
    query = (
        "SELECT number, custom_id, place, size FROM batch_lines"
        " WHERE batch = ? AND number > ? AND NOT answered ORDER BY number LIMIT ?"
    )
    return select_rows(db, BatchLine, query, (id, after, limit))


def _check_status(db: sqlite3.Connection, id: str, status: BatchStatus) -> None:
    row = db.execute("SELECT status FROM batches WHERE id = ?", (id,)).fetchone()
    if row is None or row[0] != status:
        raise JobStopped


def _set_status(db: sqlite3.Connection, id: str, status: BatchStatus, now: float) -> None:
    db.execute(
        "UPDATE batches SET status = ?, times = json_set(times, '$.' || ?, ?) WHERE id = ?",
        (status, status, now, id),
    )


def _select(db: sqlite3.Connection, id: str, owner: str | None = None) -> KeptBatch:
    found = select_row(db, KeptBatch, f"{_BATCHES} WHERE id = ?", (id,))
    if found is None or owner not in (None, found.owner):
        raise BatchNotFound(f"no batch {id[:100]!r}", "batch_id")
    return found
