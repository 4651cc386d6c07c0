"""Lexicons on disk: one JSON file each, named by a generated id, and always complete.

A file is written under another name and renamed into place. One server at a time uses a folder.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cantata.contract.data.errors import (
    ConfigError,
    InvalidRequest,
    LexiconExists,
    LexiconNotFound,
    LexiconsFull,
    NotStored,
    StorageFailed,
)
from cantata.contract.data.request import LexiconEntry

MAX_LEXICONS = 100
MAX_NAME_CHARACTERS = 64
_ID = re.compile(r"lexicon_[0-9a-f]{32}")


class StoredLexicon(BaseModel):
    """The content of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    created_at: int
    """Unix time."""
    description: str = ""
    entries: tuple[LexiconEntry, ...] = Field(default=())


class LexiconStore:
    """The lexicons of one folder, which the first upload creates."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lexicons: Mapping[str, StoredLexicon] = {}
        """Lexicons by id, oldest first. The mapping is replaced, never changed."""
        self._changing = asyncio.Lock()

    @property
    def lexicons(self) -> tuple[StoredLexicon, ...]:
        """The oldest first."""
        return tuple(self._lexicons.values())

    def load(self) -> None:
        """Read the folder; blocks. Raises ConfigError: the folder, or a lexicon in it, cannot be
        read."""
        try:
            paths = [one for one in self._folder.glob("*.json") if _ID.fullmatch(one.stem)]
            found = [StoredLexicon.model_validate_json(path.read_bytes()) for path in paths]
        except (OSError, ValidationError) as error:
            raise ConfigError(f"{self._folder}: lexicons cannot be read from it") from error
        found.sort(key=lambda one: (one.created_at, one.id))
        self._lexicons = {one.id: one for one in found}

    def find(self, name: str) -> StoredLexicon:
        """The lexicon with this id or name. Raises LexiconNotFound: none has it; the message lists
        the names."""
        for one in self._lexicons.values():
            if name in (one.id, one.name):
                return one
        names = ", ".join(one.name for one in self._lexicons.values()) or "none"
        raise LexiconNotFound(f"no lexicon {name!r}; kept: {names}", "lexicons")

    async def add(
        self, name: str, entries: tuple[LexiconEntry, ...], description: str = ""
    ) -> StoredLexicon:
        """Keep a lexicon.

        Raises:
            InvalidRequest: a name that is none.
            LexiconExists: another has this name.
            LexiconsFull: there are too many.
            NotStored: it cannot be written.
        """
        name = " ".join(name.split())
        if not 1 <= len(name) <= MAX_NAME_CHARACTERS or not name.isprintable():
            raise InvalidRequest(
                f"a lexicon's name has 1 to {MAX_NAME_CHARACTERS} printable characters", "name"
            )
        made = StoredLexicon(
            id=f"lexicon_{uuid.uuid4().hex}",
            name=name,
            created_at=int(time.time()),
            description=" ".join(description.split())[:1000],
            entries=entries,
        )
        async with self._changing:
            if any(name in (one.name, one.id) for one in self._lexicons.values()):
                raise LexiconExists(f"there is already a lexicon {name!r}; delete it first", "name")
            if len(self._lexicons) >= MAX_LEXICONS:
                raise LexiconsFull(f"{MAX_LEXICONS} lexicons are kept at most; delete one first")
            try:
                await asyncio.to_thread(self._write, made)
            except OSError as error:
                raise NotStored(f"the lexicon cannot be stored: {error.strerror}") from error
            self._lexicons = {**self._lexicons, made.id: made}
        return made

    async def remove(self, name: str) -> StoredLexicon:
        """Delete a lexicon, by id or name. Running requests with it finish.

        Raises:
            LexiconNotFound: there is none.
            StorageFailed: it cannot be deleted.
        """
        async with self._changing:
            found = self.find(name)
            try:
                await asyncio.to_thread(self._locate(found).unlink, missing_ok=True)
            except OSError as error:
                raise StorageFailed(f"the lexicon cannot be deleted: {error.strerror}") from error
            self._lexicons = {id: one for id, one in self._lexicons.items() if id != found.id}
        return found

    def _locate(self, lexicon: StoredLexicon) -> Path:
        return self._folder / f"{lexicon.id}.json"

    def _write(self, lexicon: StoredLexicon) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = self._folder / f".{lexicon.id}"
        try:
            handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(lexicon.model_dump_json().encode())
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self._locate(lexicon))
        finally:
            unfinished.unlink(missing_ok=True)
