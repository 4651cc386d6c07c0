"""The SQLite file of a folder of jobs, files and batches, in a worker thread of its own."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from cantata.contract.data.errors import JobsLocked, NotStored, StorageFailed
from cantata.jobs.records import connect_rows

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

FILE = "jobs.sqlite3"
LOCK = "lock"
_WAIT_S = 5.0
"""For another program that looks into the file."""
_JOBS = """
CREATE TABLE jobs (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, status TEXT NOT NULL, created_at REAL NOT NULL,
    ended_at REAL, expires_at REAL, options TEXT NOT NULL, sample_rate INTEGER NOT NULL,
    channels INTEGER NOT NULL, title TEXT NOT NULL, author TEXT NOT NULL, language TEXT NOT NULL,
    reserved INTEGER NOT NULL, error_code TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE chapters (
    job TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE, number INTEGER NOT NULL,
    title TEXT NOT NULL, PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE sentences (
    job TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE, number INTEGER NOT NULL,
    chapter INTEGER NOT NULL, text TEXT NOT NULL, speaker TEXT NOT NULL, pause_s REAL NOT NULL,
    begins INTEGER NOT NULL, samples INTEGER, words TEXT, skipped TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE files (
    job TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE, number INTEGER NOT NULL,
    name TEXT NOT NULL, media_type TEXT NOT NULL, size INTEGER NOT NULL, PRIMARY KEY (job, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    job TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE, id INTEGER NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (job, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX by_status ON jobs (status, created_at);
"""
_BATCHES = """
CREATE TABLE stored_files (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL,
    purpose TEXT NOT NULL, name TEXT NOT NULL, size INTEGER NOT NULL, created_at REAL NOT NULL,
    expires_at REAL NOT NULL
) STRICT;
CREATE INDEX files_of ON stored_files (owner, number);
CREATE TABLE batches (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL,
    endpoint TEXT NOT NULL, input_file TEXT NOT NULL, output_file TEXT NOT NULL,
    error_file TEXT NOT NULL, metadata TEXT NOT NULL, output_expires_s INTEGER,
    status TEXT NOT NULL, created_at REAL NOT NULL, expires_at REAL NOT NULL, times TEXT NOT NULL,
    delete_at REAL, problems TEXT NOT NULL DEFAULT '[]', total INTEGER NOT NULL DEFAULT 0,
    completed INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
    output_bytes INTEGER NOT NULL DEFAULT 0, error_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX batches_of ON batches (owner, number);
CREATE TABLE batch_lines (
    batch TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE, number INTEGER NOT NULL,
    custom_id TEXT NOT NULL, place INTEGER NOT NULL, size INTEGER NOT NULL,
    answered INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (batch, number)
) STRICT, WITHOUT ROWID;
"""
_VERIFICATION = """
ALTER TABLE sentences ADD COLUMN words_verified INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sentences ADD COLUMN words_missing INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sentences ADD COLUMN words_extra INTEGER NOT NULL DEFAULT 0;
"""
_USAGE = """
ALTER TABLE batches ADD COLUMN input_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batches ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batches ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batches ADD COLUMN reasoning_tokens INTEGER NOT NULL DEFAULT 0;
"""
_SCHEMAS = (_JOBS, _BATCHES, _VERIFICATION, _USAGE)
"""Each brings a file of the version before it to its own, from 1."""


def open_jobs(folder: Path) -> sqlite3.Connection:
    """The database of a folder, for a process that only reads while the server has it."""
    return connect_rows(str(folder / FILE), _WAIT_S)


class JobDatabase:
    """Opened by its first use, which makes the folder. One program at a time has it. `folder`: of
    the file; only its owner may read what is made there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1, "jobs")
        self._connection: sqlite3.Connection | None = None
        self._lock = -1

    @property
    def exists(self) -> bool:
        """Whether there are jobs from an earlier time."""
        return (self._folder / FILE).exists()

    async def run(self, work: Work[T]) -> T:
        """One transaction, in the thread. It ends whole even if the caller is cancelled.

        Raises:
            JobsLocked: another program has the folder.
            NotStored: the disk is full, read-only or broken.
            StorageFailed: the file is damaged.
        """
        job = asyncio.get_running_loop().run_in_executor(self._thread, self._transact, work)
        return await asyncio.shield(job)

    async def close(self) -> None:
        """Let others have the folder."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def _transact(self, work: Work[T]) -> T:
        try:
            connection = self._connection or self._open()
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                return work(connection)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise JobsLocked(f"another program uses {self._folder / FILE}") from error
            raise NotStored(f"this cannot be stored: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StorageFailed(f"{self._folder / FILE} is damaged: {error}") from error
        except OSError as error:
            raise NotStored(f"this cannot be stored: {error.strerror}") from error

    def _open(self) -> sqlite3.Connection:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._take_lock()
        path = self._folder / FILE
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = open_jobs(self._folder)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if not 0 <= version <= len(_SCHEMAS):
                raise StorageFailed(f"{path} is of another version of Cantata ({version})")
            for number, schema in enumerate(_SCHEMAS[version:], version + 1):
                connection.executescript(f"BEGIN;{schema}PRAGMA user_version = {number};COMMIT;")
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _take_lock(self) -> None:
        """Keep other servers out until this process ends, however it ends."""
        if self._lock >= 0:
            return
        lock = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise JobsLocked(
                f"another program works on the jobs in {self._folder}; give this one another "
                "folder with --jobs-dir"
            ) from None
        self._lock = lock

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
