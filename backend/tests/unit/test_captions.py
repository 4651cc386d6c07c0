"""Words on file: JSON, SubRip, WebVTT."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cantata.audio.captions import CaptionError, check_captions, write_captions
from cantata.contract.service import SpokenWord

TEXT = '"Tea < coffee," she said. Was it $3.50? [pause 2s] Yes!'


def words(text: str = TEXT) -> list[SpokenWord]:
    """A word each half second, pauses not among them."""
    found = re.finditer(
        r"[\w$<][\w.$]*\w|[<\w]", re.sub(r"\[pause.*?\]", lambda m: " " * len(m[0]), text)
    )
    return [SpokenWord(*m.span(), 0.5 * i, 0.5 * i + 0.4) for i, m in enumerate(found)]


def written(name: str, folder: Path, text: str = TEXT) -> str:
    write_captions(folder / name, text, words(text))
    return (folder / name).read_text(encoding="utf-8")


def test_json_has_every_word(tmp_path: Path) -> None:
    entries = json.loads(written("a.json", tmp_path))
    assert entries[0] == {"text": "Tea", "start": 0.0, "end": 0.4, "text_start": 1, "text_end": 4}
    assert [TEXT[e["text_start"] : e["text_end"]] for e in entries] == [e["text"] for e in entries]
    assert "$3.50" in [e["text"] for e in entries]


def test_srt(tmp_path: Path) -> None:
    assert written("a.srt", tmp_path) == (
        '1\n00:00:00,000 --> 00:00:02,400\n"Tea < coffee," she said.\n\n'
        "2\n00:00:02,500 --> 00:00:03,900\nWas it $3.50?\n\n"
        "3\n00:00:04,000 --> 00:00:04,400\nYes!\n\n"
    )


def test_vtt_escapes_what_it_would_read_as_markup(tmp_path: Path) -> None:
    assert written("a.vtt", tmp_path).startswith(
        'WEBVTT\n\n00:00:00.000 --> 00:00:02.400\n"Tea &lt; coffee," she said.\n'
    )


def test_long_sentences_are_cut_between_words(tmp_path: Path) -> None:
    text = " ".join(f"word{i}" for i in range(1200))
    captions = re.findall(r"^word.*$", written("a.srt", tmp_path, text), re.MULTILINE)
    assert " ".join(captions) == text
    assert max(map(len, captions)) <= 84


def test_captions_are_sentences(tmp_path: Path) -> None:
    """Not abbreviations, nor the numbers of a list; a quotation begins with its mark."""
    text = '1. Dr. Ray paid. "Why?"\n2) See no. 7 of J. R. Fox!\nNo. It was 5.'
    captions = re.findall(r"-->.*\n(.*)\n", written("a.srt", tmp_path, text))
    assert captions == [
        "1. Dr. Ray paid.",
        '"Why?"',
        "2) See no. 7 of J. R. Fox!",
        "No.",
        "It was 5.",
    ]


def test_times_beyond_an_hour(tmp_path: Path) -> None:
    write_captions(tmp_path / "a.srt", "late", [SpokenWord(0, 4, 3725.0004, 3725.9996)])
    assert "01:02:05,000 --> 01:02:06,000" in (tmp_path / "a.srt").read_text(encoding="utf-8")


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(CaptionError, match=r"must end with \.json, \.srt, \.vtt"):
        check_captions(tmp_path / "a.txt")
    with pytest.raises(CaptionError, match="there is no folder"):
        check_captions(tmp_path / "nowhere" / "a.srt")
    (tmp_path / "folder.srt").mkdir()
    with pytest.raises(CaptionError, match="cannot be written"):
        write_captions(tmp_path / "folder.srt", TEXT, words())
