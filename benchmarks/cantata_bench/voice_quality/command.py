"""`cantata bench voices`. Heavy imports stand inside the command, so that help is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cantata.contract.data.errors import CantataError

MARKER = "figures: written by `cantata bench voices`"


def voices_command(
    models: Annotated[
        list[str], typer.Argument(help="Models' names or checkpoint folders to compare.")
    ],
    voice: Annotated[
        list[str] | None, typer.Option(help="Only these voices. Repeatable. Default: all.")
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="File with a kind, a tab and a sentence in each line. Default: 60 sentences.",
        ),
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Judge only each sentence of so many.")] = 1,
    folder: Annotated[Path, typer.Option(help="Folder for the recordings and the results.")] = Path(
        "artifacts/voices"
    ),
    page: Annotated[
        Path | None, typer.Option(exists=True, help="Markdown page to update, too.")
    ] = None,
) -> None:
    """Judge how natural and how clear voices sound, by networks that listen."""
    from cantata_bench.tables import put_between_markers
    from cantata_bench.voice_quality.run import judge_models, make_table, read_sentences

    try:
        sentences = read_sentences(texts)[::every]
        figures = judge_models(models, voice or (), sentences, folder, _tell)
    except (CantataError, RuntimeError) as error:
        typer.echo(f"cantata: {error}", err=True)
        raise typer.Exit(1) from None
    text = make_table(figures)
    typer.echo(text)
    if page is not None:
        put_between_markers(page, MARKER, text)


def _tell(line: str) -> None:
    typer.echo(line, err=True)
