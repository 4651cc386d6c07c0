"""The commands that measure recognition. Imports stand inside, so that help is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cantata.contract.data.errors import CantataError

MARKER = "figures: written by `cantata bench transcription`"


def transcription_command(
    voice: Annotated[
        list[str] | None, typer.Option(help="Voices that read. Repeatable. Default: heart, clara.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Read only each sentence of so many.")] = 1,
    long_minutes: Annotated[
        float, typer.Option(min=0, help="Length of a recording without a break; 0: none.")
    ] = 10.0,
    folder: Annotated[Path, typer.Option(help="Folder for the server's log.")] = Path(
        "artifacts/transcription"
    ),
    page: Annotated[
        Path | None, typer.Option(exists=True, help="Markdown page to update, too.")
    ] = None,
) -> None:
    """Measure how well and how fast recordings are transcribed, beside other recognisers."""
    from cantata_bench.tables import put_between_markers
    from cantata_bench.transcription.run import make_table, measure
    from cantata_bench.voice_quality.run import read_sentences

    try:
        sentences = read_sentences(None)[::every]
        found = measure(voice or ("heart", "clara"), sentences, long_minutes, folder, _tell)
    except (CantataError, RuntimeError) as error:
        typer.echo(f"cantata: {error}", err=True)
        raise typer.Exit(1) from None
    text = make_table(found)
    typer.echo(text)
    if page is not None:
        put_between_markers(page, MARKER, text)


def uploads_command(
    uploads: Annotated[int, typer.Option(min=1, help="Recordings sent at the same time.")] = 50,
    streams: Annotated[int, typer.Option(min=1, help="Live streams beside them.")] = 16,
    seconds: Annotated[float, typer.Option(min=1, help="Of each measurement.")] = 60.0,
    folder: Annotated[Path, typer.Option(help="Folder for the server's log.")] = Path(
        "artifacts/transcription"
    ),
) -> None:
    """Measure live streams without and with recordings that are uploaded beside them."""
    from cantata_bench.transcription.uploads import make_uploads_table, measure_uploads

    try:
        found = measure_uploads(uploads, streams, seconds, folder, _tell)
    except (CantataError, RuntimeError) as error:
        typer.echo(f"cantata: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(make_uploads_table(found))


def _tell(line: str) -> None:
    typer.echo(line, err=True)
