"""The command `cantata book`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cantata.cli.media_commands import OUTPUT, VOICE, ModelOrFolder, Quiet, Speed, VoiceName
from cantata.cli.runner import fail, run_job, set_up_logging
from cantata.contract.data.errors import CantataError


class BookForm(StrEnum):
    """What `cantata book --format` writes: one file, or one for each chapter."""

    M4B = "m4b"
    EPUB = "epub"
    MP3 = "mp3"
    FLAC = "flac"
    OPUS = "opus"
    AAC = "aac"
    WAV = "wav"


class BookCaptions(StrEnum):
    """What `cantata book --captions` writes."""

    SRT = "srt"
    VTT = "vtt"


def book(
    file: Annotated[
        Path,
        typer.Argument(
            exists=True, dir_okay=False, help="Document: .epub, .pdf, .md, .html or .txt."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="An .m4b or .epub file, or a folder for a file per chapter. Default: beside FILE.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    form: Annotated[
        BookForm | None,
        typer.Option("--format", help="Default: m4b; mp3 for a folder.", rich_help_panel=OUTPUT),
    ] = None,
    captions: Annotated[
        BookCaptions | None,
        typer.Option(help="Also write captions beside the sound.", rich_help_panel=OUTPUT),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(help="Title. Default: the document's.", rich_help_panel=OUTPUT),
    ] = None,
    quiet: Quiet = False,
    voice: VoiceName = None,
    speaker: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VOICE",
            help="Speak lines that begin with NAME and a colon by this voice. Repeatable.",
            rich_help_panel=VOICE,
        ),
    ] = None,
    speed: Speed = 1.0,
    seed: Annotated[
        int, typer.Option(min=0, help="The same seed gives the same sound.", rich_help_panel=VOICE)
    ] = 0,
    lexicon: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Pronunciation lexicon (PLS 1.0). Repeatable.",
            rich_help_panel=VOICE,
        ),
    ] = None,
    model: ModelOrFolder = None,
) -> None:
    """Make an audiobook of a document. The same command goes on where it was ended."""
    from rich.console import Console

    from cantata.cli.book import BookArguments, choose_output, make_book, read_speakers
    from cantata.documents.document import find_kind

    try:
        find_kind(file.name)
        place, chosen = choose_output(file, out, form.value if form else None)
        speakers = read_speakers(speaker or [])
    except CantataError as error:
        fail(error.message, code=2)
    set_up_logging()
    options = BookArguments(
        file,
        place,
        chosen,
        captions.value if captions else None,
        voice,
        speakers,
        speed,
        seed,
        title,
        tuple(lexicon or ()),
        model,
    )
    run_job(make_book(options, Console(stderr=True, quiet=quiet)))
