"""The options of `cantata say`, and the text that it speaks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cantata.contract.data.errors import CantataError

STANDARD_STREAM = Path("-")
"""Standard input or output."""
TEXT_ENDINGS = (".txt", ".md", ".markdown", ".html", ".htm")
"""A single argument with one of these that is a file is read, not spoken."""


class NoTextError(CantataError):
    """There is no text to speak, or it cannot be read."""

    code = "text_error"


@dataclass(frozen=True, slots=True)
class SayArguments:
    """The command's options."""

    text: str
    out: Path | None = None
    """None: the sound device; `-`: standard output."""
    form: str | None = None
    """Format of the sound. None: by the name of `out`; WAV on standard output."""
    timestamps: tuple[Path, ...] = ()
    """Files for the words' times, each in the format of its name."""
    voice: str | None = None
    speed: float = 1.0
    seed: int | None = None
    instructions: str | None = None
    ref_audio: Path | None = None
    """A recording of the speaker to follow."""
    ref_text: str | None = None
    """What is said in it."""
    model: str | None = None
    server: str | None = None


def read_text(words: Sequence[str], file: Path | None) -> str:
    """The text from the command line, a file or standard input.

    Args:
        words: of the command line; a single one may be `-` or name a text file.
        file: from `--file`; None: none was given.

    Raises:
        TextError: there is none, there are two, or it is not UTF-8.
    """
    if words and file is not None:
        raise NoTextError("give either a text to speak or a file with -f")
    if file is None and len(words) <= 1:
        file = _find_file(words[0] if words else None)
    text = " ".join(words) if file is None else _read(file)
    if not text.strip():
        raise NoTextError("there is nothing to say")
    return text


def _find_file(word: str | None) -> Path | None:
    """The file that a single argument, or none, stands for."""
    if word is None:
        if sys.stdin.isatty():
            raise NoTextError("give a text to speak, a file with -f, or a text on standard input")
        return STANDARD_STREAM
    is_file = word.lower().endswith(TEXT_ENDINGS) and Path(word).is_file()
    return Path(word) if word == "-" or is_file else None


def _read(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if file == STANDARD_STREAM else file.read_bytes()
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise NoTextError(f"{file}: not a text file in UTF-8 ({error})") from error
