"""Files of clients on disk: a row for each in the database of jobs, its bytes in `files`."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from cantata.contract.data.errors import FileInUse, FileNotKept, JobsFull, NotStored
from cantata.jobs.batch import FINAL, FilePurpose, KeptFile
from cantata.jobs.records import ListPage, count_rows, insert_row, select_page, select_row
from cantata.jobs.rows import count_bytes
from cantata.jobs.store import JobStore

_FILES = "SELECT id, owner, purpose, name, size, created_at, expires_at FROM stored_files"
_PART = ".part"
"""Ends the name of a file that is being written."""
_PART_S = 86_400.0
"""Seconds after which such a file was left behind by a process that ended."""
_OPEN = f"status NOT IN ({', '.join(repr(one.value) for one in FINAL)})"


class FileStore:
    """The files of a store's folder. `jobs`: whose folder, database and limits these are."""

    def __init__(self, jobs: JobStore) -> None:
        self._jobs = jobs
        self._folder = jobs.folder / "files"

    async def add(
        self,
        owner: str,
        purpose: FilePurpose,
        name: str,
        source: BinaryIO,
        expires_s: float | None = None,
    ) -> KeptFile:
        """Keep a file, whose bytes are copied block by block.

        Args:
            owner: label of the client's API key.
            name: as the client has it.
            source: read from its beginning.
            expires_s: seconds to its deletion; None: as long as all else is kept.

        Raises:
            JobsFull: there are too many of this client, or of all.
            StorageFailed: it cannot be written.
        """
        id, database = make_file_id(), self._jobs.database
        part = self._folder / (id + _PART)
        source.seek(0, os.SEEK_END)
        size = source.tell()
        await database.run(lambda db: self._check_room(db, owner, size))
        now = self._jobs.clock()
        expires_at = now + (self._jobs.limits.expires_s if expires_s is None else expires_s)
        kept = KeptFile(id, owner, purpose, name, size, now, expires_at)

        def work(db: sqlite3.Connection) -> None:
            self._check_room(db, owner, size)
            part.rename(self.find_path(id))
            insert_row(db, "stored_files", asdict(kept))

        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            await asyncio.to_thread(_copy, source, part)
            await database.run(work)
        except OSError as error:
            raise NotStored(f"the file cannot be stored: {error.strerror}") from error
        finally:
            part.unlink(missing_ok=True)
        return kept

    async def list_page(
        self, owner: str, page: ListPage, purpose: str | None = None
    ) -> tuple[list[KeptFile], bool]:
        """Files of a client, and whether there are more.

        Args:
            owner: label of the client's API key.
            purpose: only files for this; None: all.

        Raises:
            FileNotKept: the page is to follow a file that is not there.
        """

        def work(db: sqlite3.Connection) -> tuple[list[KeptFile], bool]:
            if page.after is not None:
                _select(db, page.after, owner)
            wanted = {"owner": owner} | ({} if purpose is None else {"purpose": purpose})
            return select_page(db, KeptFile, _FILES, "stored_files", page, **wanted)

        return await self._jobs.database.run(work)

    async def find(self, id: str, owner: str) -> KeptFile:
        """A file of a client. Raises FileNotKept: there is none."""
        return await self._jobs.database.run(lambda db: _select(db, id, owner))

    async def delete(self, id: str, owner: str) -> None:
        """Delete a file.

        Raises:
            FileNotKept: there is none.
            FileInUse: a batch is not done with it.
        """

        def work(db: sqlite3.Connection) -> None:
            _select(db, id, owner)
            reader = f"SELECT id FROM batches WHERE input_file = ? AND {_OPEN}"
            if (row := db.execute(reader, (id,)).fetchone()) is not None:
                raise FileInUse(f"{row[0]} still reads {id}; cancel it first", "file_id")
            db.execute("DELETE FROM stored_files WHERE id = ?", (id,))
            self.find_path(id).unlink(missing_ok=True)

        await self._jobs.database.run(work)

    async def delete_expired(self) -> None:
        """Delete the files whose time has come, unless a batch still reads them, and what uploads
        left behind that were cut off."""
        now = self._jobs.clock()

        def work(db: sqlite3.Connection) -> None:
            over = f"expires_at <= ? AND id NOT IN (SELECT input_file FROM batches WHERE {_OPEN})"
            found = db.execute(f"SELECT id FROM stored_files WHERE {over}", (now,)).fetchall()
            db.execute(f"DELETE FROM stored_files WHERE {over}", (now,))
            for (id,) in found:
                self.find_path(id).unlink(missing_ok=True)
            for part in self._folder.glob(f"*{_PART}"):
                if part.stat().st_mtime < now - _PART_S:
                    part.unlink(missing_ok=True)

        await self._jobs.database.run(work)

    def find_path(self, id: str) -> Path:
        return self._folder / id

    def _check_room(self, db: sqlite3.Connection, owner: str, size: int) -> None:
        limits = self._jobs.limits
        if count_rows(db, "stored_files", owner) >= limits.files_per_owner:
            raise JobsFull(f"{limits.files_per_owner:,} files are kept at most; delete one first")
        if count_bytes(db) + size > limits.max_bytes:
            raise JobsFull(
                f"all jobs and files together have at most {limits.max_bytes >> 20} MiB; delete "
                "some first"
            )


def make_file_id() -> str:
    return f"file-{uuid.uuid4().hex}"


def _select(db: sqlite3.Connection, id: str, owner: str) -> KeptFile:
    found = select_row(db, KeptFile, f"{_FILES} WHERE id = ? AND owner = ?", (id, owner))
    if found is None:
        raise FileNotKept(f"no file {id[:100]!r}", "file_id")
    return found


def _copy(source: BinaryIO, path: Path) -> None:
    """Copy a file, and see it on the disk."""
    source.seek(0)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as target:
        shutil.copyfileobj(source, target)
        target.flush()
        os.fdatasync(target.fileno())
