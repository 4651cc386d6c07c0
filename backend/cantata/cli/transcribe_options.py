"""The options of `cantata transcribe`, and how it writes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cantata.api.transcription.answers import VerboseTranscription
from cantata.api.transcription.result import write_transcript
from cantata.cli.files import (
    check_ending,
    check_place,
    explain_write_errors,
    write_standard_output,
)
from cantata.utils.atomic_file import write_whole

OutputForm = Literal["txt", "srt", "vtt", "json"]
_FORMS: dict[str, OutputForm] = {".txt": "txt", ".srt": "srt", ".vtt": "vtt", ".json": "json"}


@dataclass(frozen=True, slots=True)
class TranscribeArguments:
    files: tuple[Path, ...]
    """Files and folders; `-` is standard input. None: the microphone."""
    out: Path | None
    """A file, or a folder for several. None: standard output, or beside each file."""
    form: OutputForm | None
    """None: by the name of `out`, or text."""
    language: str | None
    prompt: str
    translate: bool
    model: str | None
    server: str | None
    input_device: str | None = None
    """A part of the microphone's name. None: the system's default."""


def choose_form(options: TranscribeArguments) -> OutputForm:
    """The form that was asked for, or that the file's name stands for. Raises WrongCall: it stands
    for none."""
    if options.form is not None:
        return options.form
    if options.out is not None and not options.out.is_dir() and options.out.suffix:
        check_ending(options.out, _FORMS)
        return _FORMS[options.out.suffix.lower()]
    return "txt"


def choose_target(out: Path | None, stem: str, form: OutputForm) -> Path | None:
    """The file that one transcript is written into; None: standard output.

    Args:
        stem: the file's name in a folder, without its ending.
        form: gives the ending.

    Raises:
        FileError: its folder does not exist.
    """
    if out is not None and out.is_dir():
        out = out / f"{stem}.{form}"
    if out is not None:
        check_place(out)
    return out


def write_out(transcript: VerboseTranscription, target: Path | None, form: OutputForm) -> None:
    """Write a transcript into a file, or to standard output."""
    if form == "json":
        text = f"{transcript.model_dump_json(exclude_none=True, indent=2)}\n"
    else:
        text = write_transcript(transcript, "text" if form == "txt" else form)
    if target is None:
        with write_standard_output():
            sys.stdout.write(text)
    else:
        with explain_write_errors(target), write_whole(target) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
