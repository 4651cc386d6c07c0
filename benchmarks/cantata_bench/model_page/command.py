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
        typer.Argument(
            help="Checkpoint folders or models' names. A model without weights of its own is "
            "measured with a tiny random checkpoint."
        ),
    ],
    streams: Annotated[
        list[int],
        typer.Option(
            min=1,
            help="Load: this many simultaneous requests, on a server with as many slots. "
            "Repeatable.",
        ),
    ] = [1, 4, 8],  # noqa: B006
    rounds: Annotated[
        int, typer.Option(min=1, help="Rounds of each load, after one that is not counted.")
    ] = 3,
    frames: Annotated[
        int, typer.Option(min=2, help="Speech models: most frames of a request.")
    ] = 40,
    side: Annotated[
        int, typer.Option(min=16, help="Picture models: width and height in pixels.")
    ] = 256,
    steps: Annotated[int, typer.Option(min=1, help="Picture models: denoising steps.")] = 8,
    bfloat16: Annotated[bool, typer.Option(help="Compute in bfloat16, not in float32.")] = False,
    page: Annotated[
        Path | None, typer.Option(exists=True, help="Markdown page to update, too.")
    ] = None,
) -> None:
    """Measure a model that speaks or draws, served and as its bare stages, for its page."""
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
