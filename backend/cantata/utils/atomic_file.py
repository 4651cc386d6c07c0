"""Files that are whole or not there, however the process ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` to write at, which replaces it when the block has ended well.

    If the block fails or is cancelled, what it wrote is deleted and `path` is as it was. What is
    not a plain file, such as a device or a pipe, is written as it stands; a link stays one.
    """
    target = path.resolve() if path.is_symlink() else path
    if target.exists() and not target.is_file():
        yield target
        return
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield unfinished
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
