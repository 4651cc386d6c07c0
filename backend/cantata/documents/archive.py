"""A ZIP file of a client's: read into memory within limits, never onto the disk."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from cantata.contract.data.errors import InvalidDocument

MAX_ENTRIES = 10_000
MAX_ENTRY_BYTES = 32 << 20
MAX_TOTAL_BYTES = 256 << 20
"""Of all entries that are read, once they are unpacked."""
_ENCRYPTED = 0x1


class Archive:
    """The entries of a file. What an entry claims of its size is not believed.

    Raises:
        InvalidDocument: it is no ZIP file, or a damaged one, or has too many entries.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise InvalidDocument(f"the EPUB is damaged: {error}") from error
        self._left = MAX_TOTAL_BYTES
        self.names = frozenset(self._file.namelist())
        if len(self._file.filelist) > MAX_ENTRIES:
            raise InvalidDocument(f"the EPUB has more than {MAX_ENTRIES:,} files")

    def read(self, name: str) -> bytes:
        """An entry's bytes.

        Raises:
            InvalidDocument: it is not there, damaged, encrypted or too large.
        """
        try:
            entry = self._file.getinfo(name)
            if entry.flag_bits & _ENCRYPTED:
                raise InvalidDocument(f"the EPUB is encrypted ({name[:100]})")
            most = min(MAX_ENTRY_BYTES, self._left)
            with self._file.open(entry) as opened:
                data = opened.read(most + 1)
        except KeyError:
            raise InvalidDocument(f"the EPUB is damaged: it has no file {name[:200]!r}") from None
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError) as error:
            raise InvalidDocument(f"the EPUB is damaged: {name[:100]}: {error}") from error
        if len(data) > most:
            raise InvalidDocument(
                f"the EPUB is too large once unpacked ({name[:100]}): at most "
                f"{MAX_ENTRY_BYTES >> 20} MiB a file and {MAX_TOTAL_BYTES >> 20} MiB in all"
            )
        self._left -= len(data)
        return data
