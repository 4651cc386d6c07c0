"""Writes word times to a file: JSON by word, or captions as SubRip or WebVTT."""

from __future__ import annotations

import html
import json
import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from pathlib import Path

from cantata.contract.data.errors import CantataError
from cantata.contract.service import SpokenWord
from cantata.text import strip_markup
from cantata.text.sentences import split_sentences

FORMATS = (".json", ".srt", ".vtt")
MAX_CAPTION_CHARACTERS = 84
"""Most characters of a caption: two lines of 42, as is usual in subtitles."""
_MAX_GAP_S = 1.0
_LIST_NUMBER = re.compile(r"\s*\(?\d{1,3}[.)]\s*")


class CaptionError(CantataError):
    """The captions file cannot be written."""

    code = "caption_error"


def check_captions(path: Path) -> None:
    """Check a captions file before the work is done. Raises CaptionError: the folder or the format
    does not exist."""
    if path.suffix.lower() not in FORMATS:
        raise CaptionError(f"{path}: the name must end with {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise CaptionError(f"{path}: there is no folder {path.parent}")


def write_captions(
    path: Path, text: str, words: Sequence[SpokenWord], form: str | None = None
) -> None:
    """Write the words of a text.

    Args:
        text: the words' offsets are into it.
        form: one of `FORMATS`; None: as the name ends.

    Raises:
        CaptionError: the file cannot be written.
    """
    match (form or path.suffix).lower():
        case ".json":
            content = _write_json(text, words)
        case ".srt":
            content = _write_srt(text, words)
        case _:
            content = _write_vtt(text, words)
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise CaptionError(f"{path}: cannot be written ({error.strerror})") from error


def _write_json(text: str, words: Sequence[SpokenWord]) -> str:
    entries = [
        {
            "text": text[word.text_start : word.text_end],
            "start": round(word.start_s, 3),
            "end": round(word.end_s, 3),
            "text_start": word.text_start,
            "text_end": word.text_end,
        }
        for word in words
    ]
    return json.dumps(entries, ensure_ascii=False, indent=1) + "\n"


def _write_srt(text: str, words: Sequence[SpokenWord]) -> str:
    return "".join(
        f"{number}\n{_format_clock(start_s, ',')} --> {_format_clock(end_s, ',')}\n{caption}\n\n"
        for number, (start_s, end_s, caption) in enumerate(_iterate_captions(text, words), 1)
    )


def _write_vtt(text: str, words: Sequence[SpokenWord]) -> str:
    cues = (
        f"\n{_format_clock(start_s, '.')} --> {_format_clock(end_s, '.')}\n"
        f"{html.escape(caption, quote=False)}\n"
        for start_s, end_s, caption in _iterate_captions(text, words)
    )
    return "".join(["WEBVTT\n", *cues])


def _iterate_captions(text: str, words: Sequence[SpokenWord]) -> Iterator[tuple[float, float, str]]:
    """Start, end and text of each caption: sentences, cut where they are long or pause."""
    ends = [*(span.end for span in split_sentences(text)[0]), len(text)]
    first = start = 0
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else None
        if following and not _ends_caption(text, ends, words[first], word, following):
            continue
        # Marks that open the next sentence belong to it.
        end = min(_find_sentence_end(ends, word), following.text_start) if following else len(text)
        caption = " ".join(strip_markup(text[start:end]).split())
        yield words[first].start_s, word.end_s, caption
        first, start = index + 1, end


def _ends_caption(
    text: str, ends: Sequence[int], first: SpokenWord, word: SpokenWord, following: SpokenWord
) -> bool:
    """Args: ends: of the sentences, in order; the last is the text's."""
    if _LIST_NUMBER.fullmatch(text, first.text_start, following.text_start):
        return False
    return (
        "\n" in text[word.text_end : following.text_start]
        or _find_sentence_end(ends, word) <= following.text_start
        or following.text_end - first.text_start > MAX_CAPTION_CHARACTERS
        or following.start_s - word.end_s > _MAX_GAP_S
    )


def _find_sentence_end(ends: Sequence[int], word: SpokenWord) -> int:
    """Where the word's sentence ends."""
    return ends[bisect(ends, word.text_end - 1)]


def _format_clock(seconds: float, point: str) -> str:
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours:02}:{minutes:02}:{whole % 60:02}{point}{milliseconds:03}"
