"""`cantata book`: where it writes, who speaks, and what it refuses before it loads a voice."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cantata.cli.app import app
from cantata.cli.book import choose_output, read_speakers
from cantata.contract.data.errors import CantataError


def test_the_name_says_what_is_written() -> None:
    book = Path("a/novel.epub")
    assert choose_output(book, None, None) == (Path("a/novel.m4b"), "m4b")
    assert choose_output(book, None, "mp3") == (Path("a/novel"), "mp3")
    assert choose_output(book, Path("b.M4B"), None) == (Path("b.M4B"), "m4b")
    assert choose_output(book, Path("folder"), None) == (Path("folder"), "mp3")
    assert choose_output(Path("a/novel.txt"), None, "epub") == (Path("a/novel.epub"), "epub")
    assert choose_output(book, Path("read.epub"), None) == (Path("read.epub"), "epub")
    for out, form in (
        (Path("b.m4b"), "flac"),
        (Path("b.m4b"), "epub"),
        (Path("folder"), "m4b"),
        (Path("folder"), "epub"),
        (None, "epub"),
        (Path("b.mp3"), None),
        (Path("b.WAV"), "wav"),
    ):
        with pytest.raises(CantataError):
            choose_output(book, out, form)


def test_a_folder_may_have_any_name_once_it_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "vol.mp3"
    folder.mkdir()
    assert choose_output(Path("a.epub"), folder, None) == (folder, "mp3")
    assert choose_output(Path("a.epub"), Path("vol.1"), None) == (Path("vol.1"), "mp3")


def test_speakers_are_written_with_their_voices() -> None:
    assert read_speakers(["Ann = ruby", "Bob=ben"]) == {"Ann": "ruby", "Bob": "ben"}
    with pytest.raises(CantataError, match="NAME=VOICE"):
        read_speakers(["Ann"])


@pytest.mark.parametrize(
    ("name", "data", "out", "code", "reason"),
    [
        ("a.docx", b"x", "a.m4b", 2, "no document"),
        ("a.epub", b"x", "a.m4b", 1, "damaged"),
        ("a.txt", b"...", "a.m4b", 1, "no text"),
        ("a.txt", b"One.", "none/a.m4b", 1, "there is no folder"),
        ("a.txt", b"One.", "a.txt", 2, "is no folder"),
        ("a.txt", b"One.", "b.mp3", 2, "one file as .m4b or .epub"),
        ("a.epub", b"x", "a.epub", 2, "the document itself"),
    ],
)
def test_mistakes_are_told_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    data: bytes,
    out: str,
    code: int,
    reason: str,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / name).write_bytes(data)
    command = ["book", str(tmp_path / name), "-o", str(tmp_path / out)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == code
    assert reason in done.stderr


def test_a_bad_lexicon_is_told_before_a_voice_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    book, lexicon = tmp_path / "a.txt", tmp_path / "b.pls"
    book.write_text("One.")
    lexicon.write_text("<lexicon>", "utf-16")
    done = CliRunner().invoke(app, ["book", str(book), "--lexicon", str(lexicon)])
    assert done.exit_code == 1
    assert "b.pls: the lexicon is not XML" in done.stderr
    assert not (tmp_path / "cache").exists()
