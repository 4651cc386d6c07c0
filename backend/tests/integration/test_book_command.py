"""`cantata book`: killed in the middle, it goes on, and the files are as if nothing had been."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from cantata.jobs.database import FILE

pytestmark = pytest.mark.integration

TEXT = "\n\n".join(
    f"# Part {n}\n\nHere is sentence one of {n}. Ann says more.\n\nANN: The end of {n}."
    for n in range(1, 9)
)
_PATIENCE_S = 240.0
_LOOK_S = 0.02


def words(document: Path, out: Path) -> list[str]:
    command = [sys.executable, "-m", "cantata", "book", str(document), "-o", str(out)]
    return [*command, "--format", "wav", "--speaker", "Ann=ruby", "--captions", "srt"]


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "XDG_CACHE_HOME": str(cache)}


def count_spoken(cache: Path) -> int:
    for path in cache.glob(f"cantata/books/*/{FILE}"):
        with suppress(sqlite3.OperationalError):
            connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            try:
                return int(connection.execute("SELECT count(samples) FROM sentences").fetchone()[0])
            finally:
                connection.close()
    return 0


def run(document: Path, out: Path, cache: Path) -> str:
    done = subprocess.run(
        words(document, out),
        env=environment(cache),
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=True,
    )
    assert not list(cache.glob("cantata/books/*"))
    return done.stderr


@pytest.mark.thorough
def test_a_killed_book_goes_on(tmp_path: Path) -> None:
    document, out = tmp_path / "book.md", tmp_path / "out"
    document.write_text(TEXT, encoding="utf-8")
    cache = tmp_path / "cache"
    with subprocess.Popen(
        words(document, out), env=environment(cache), stderr=subprocess.DEVNULL
    ) as process:
        deadline_s = time.monotonic() + _PATIENCE_S
        while (spoken := count_spoken(cache)) < 3:
            assert process.poll() is None
            assert time.monotonic() < deadline_s
            time.sleep(_LOOK_S)
        process.kill()
    assert not out.exists()
    assert f"of {8 * 4}" in (said := run(document, out, cache))
    assert int(said.partition("going on at sentence ")[2].split()[0]) > spoken
    run(document, whole := tmp_path / "whole", tmp_path / "other")
    names = sorted(path.name for path in whole.iterdir())
    assert len(names) == 16
    assert names == sorted(path.name for path in out.iterdir())
    for name in names:
        assert (whole / name).read_bytes() == (out / name).read_bytes(), name
