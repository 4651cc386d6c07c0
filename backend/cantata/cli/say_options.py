"""The options of `cantata say`, and the text that it speaks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cantata.cli.files import STANDARD_STREAM, FileError, WrongCall, read_file
from cantata.contract.data.errors import InvalidDocument
from cantata.documents.aloud import read_aloud
from cantata.documents.document import KINDS

TEXT_ENDINGS = tuple(KINDS)
"""A single argument with one of these names a file, which is read or refused, never spoken."""


@dataclass(frozen=True, slots=True)
class SayArguments:
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
        WrongCall: there is none, or there are two.
        FileError: the file cannot be read, or is not UTF-8.
    """
    if words and file is not None:
        raise WrongCall("give either a text to speak or a file with -f")
    if file is None and len(words) <= 1:
        file = _find_file(words[0] if words else None)
    text = " ".join(words) if file is None else _read(file)
    if not text.strip():
        raise WrongCall("there is nothing to say")
    return text


def _find_file(word: str | None) -> Path | None:
    """The file that a single argument, or none, stands for."""
    if word is None:
        if sys.stdin.isatty():
            raise WrongCall("give a text to speak, a file with -f, or a text on standard input")
        return STANDARD_STREAM
    if word == "-":
        return STANDARD_STREAM
    if not word.lower().endswith(TEXT_ENDINGS):
        return None
    file = Path(word)
    if file.exists():
        return file
    if len(word.split()) == 1:
        raise WrongCall(f"there is no file {word}")
    return None


def _read(file: Path) -> str:
    """What is to be spoken of a file, by the ending of its name."""
    data = sys.stdin.buffer.read() if file == STANDARD_STREAM else read_file(file)
    kind = KINDS.get(file.suffix.lower(), "txt")
    if kind in ("epub", "pdf"):
        raise WrongCall(f'{file}: "cantata book" reads .{kind} files')
    try:
        return read_aloud(data, kind)
    except InvalidDocument as error:
        raise FileError(f"{file}: {error.message}") from None
