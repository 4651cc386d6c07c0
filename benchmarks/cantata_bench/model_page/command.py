"""`cantata bench model`. Heavy imports stand inside the command, so that help is instant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cantata.contract.data.errors import CantataError

if TYPE_CHECKING:
    from cantata.config import Dtype

MARKER = "figures: written by `cantata bench model`"


def model_command(
    models: Annotated[
        list[str],
        typer.Argument(help="Checkpoint folders, or names: then tiny ones of random weights."),
    ],
    streams: Annotated[
        list[int], typer.Option(min=1, help="Requests at a time, and slots. Repeatable.")
    ] = [1, 4, 8],  # noqa: B006
    rounds: Annotated[int, typer.Option(min=1, help="Of each, after one not counted.")] = 3,
    frames: Annotated[int, typer.Option(min=2, help="Of speech, at most.")] = 40,
    side: Annotated[int, typer.Option(min=16, help="Of pictures, in pixels.")] = 256,
    steps: Annotated[int, typer.Option(min=1, help="Of pictures.")] = 8,
    bfloat16: Annotated[bool, typer.Option(help="Instead of float32.")] = False,
    page: Annotated[
        Path | None, typer.Option(exists=True, help="Write between this page's markers, too.")
    ] = None,
) -> None:
    """Measure a model that speaks or draws beside its bare stages: a table for its page."""
    from cantata_bench.model_page.measure import Settings, measure
    from cantata_bench.model_page.tables import page_text
    from cantata_bench.tables import put_between_markers

    dtype: Dtype = "bfloat16" if bfloat16 else "float32"
    settings = Settings(tuple(streams), rounds, dtype, frames, side, steps)
    try:
        found = [measure(model, settings, _tell) for model in models]
        text = page_text(found)
        typer.echo(text)
        if page is not None:
            put_between_markers(page, MARKER, text)
    except (CantataError, RuntimeError, OSError, ValueError) as error:
        typer.secho(f"cantata bench: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None


def _tell(line: str) -> None:
    typer.echo(line, err=True)
