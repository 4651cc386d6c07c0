"""Reads a client's document in a process of its own, which a bad one may fill or hold up."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from cantata.contract.data.errors import InvalidDocument, NotInstalled
from cantata.documents.child import MAX_CPU_S
from cantata.documents.document import Document, check_document, load_document
from cantata.documents.plain import read_plain

TIMEOUT_S = 2.0 * MAX_CPU_S
_AT_ONCE = 2
"""Documents that are read at the same time; the other cores are for the stages."""
_SHORT_BYTES = {"txt": 256 << 10, "md": 32 << 10}
"""Most bytes, by kind, of a text that is read here: that takes less than starting a process. Of
Markdown that is nothing but marks, it may take a second."""


class DocumentReader:
    """Reads documents in processes of their own, for one program."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def read(self, path: Path, kind: str) -> Document:
        """Read a file.

        Args:
            path: of the file, absolute, under any name.
            kind: one of the values of `KINDS`.

        Raises:
            InvalidDocument: it cannot be read, or takes too much memory or time; says why.
            NotInstalled: the package for this kind is not there.
        """
        if await asyncio.to_thread(_is_short, path, kind):
            return await asyncio.to_thread(_read_here, path, kind)
        async with self._places:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "cantata.documents.child", kind, path),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    said, complaint = await child.communicate()
            except TimeoutError:
                raise InvalidDocument(
                    f"reading the document takes more than {TIMEOUT_S:g} s"
                ) from None
            finally:
                if child.returncode is None:
                    child.kill()
                    await child.wait()
        if child.returncode:
            last = complaint.decode(errors="replace").strip().rpartition("\n")[2][:200]
            raise InvalidDocument(
                f"the document cannot be read (its reader ended with {child.returncode}"
                f"{': ' if last else ''}{last})"
            )
        return await asyncio.to_thread(_take, said)


def _is_short(path: Path, kind: str) -> bool:
    return path.stat().st_size <= _SHORT_BYTES.get(kind, 0)


def _read_here(path: Path, kind: str) -> Document:
    return check_document(read_plain(path.read_bytes(), kind))


def _take(said: bytes) -> Document:
    answer = json.loads(said)
    if "error" in answer:
        if answer["code"] == NotInstalled.code:
            raise NotInstalled(answer["error"])
        raise InvalidDocument(answer["error"])
    return load_document(answer["document"])
