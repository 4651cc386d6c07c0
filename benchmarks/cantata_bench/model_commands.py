"""The commands that measure one model: its page's table, its recognition, its voices. Heavy imports
stand inside them, so that help is instant.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cantata.contract.data.errors import CantataError

if TYPE_CHECKING:
    from cantata.config import Dtype


MODEL_MARKER = "figures: written by `cantata bench model`"


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
        found = [measure(model, settings, _print_line) for model in models]
        text = page_text(found)
        typer.echo(text)
        if page is not None:
            put_between_markers(page, MODEL_MARKER, text)
    except (CantataError, RuntimeError, OSError, ValueError) as error:
        typer.secho(f"cantata bench: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None


def _print_line(line: str) -> None:
    typer.echo(line, err=True)


def peers_command(
    match: Annotated[
        str, typer.Argument(help="fastkokoro, pocket-tts or piper: which other program.")
    ],
    weights: Annotated[
        Path,
        typer.Argument(
            exists=True,
            help="What both serve: kokoro-onnx's folder, Pocket TTS's, or a voice of Piper's "
            "(.onnx), beside which `heart` speaks.",
        ),
    ],
    python: Annotated[
        str, typer.Option(help="Python of the environment that has the other program.")
    ] = ".venv-peers/bin/python",
    listeners: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Requests at once. Repeatable. Default: 1, 8, 16."),
    ] = None,
    turns: Annotated[int, typer.Option(min=1, help="Of each, after one that is not counted.")] = 5,
    folder: Annotated[Path, typer.Option(help="Folder for the servers' logs.")] = Path(
        "artifacts/peers"
    ),
) -> None:
    """Measure this server beside another program's own, in turns: ratios alone."""
    from cantata_bench.peers.contenders import MATCHES
    from cantata_bench.peers.duel import compare
    from cantata_bench.peers.tables import make_peers_table
    from cantata_bench.texts import text_set

    if match not in MATCHES:
        typer.echo(f"cantata: no match {match!r}; valid: {', '.join(MATCHES)}", err=True)
        raise typer.Exit(2)
    try:
        contenders = MATCHES[match](python, weights)
        found = compare(
            contenders, listeners or (1, 8, 16), turns, text_set("medium", 0), folder, _print_line
        )
    except (CantataError, RuntimeError, OSError) as error:
        typer.echo(f"cantata: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(make_peers_table(contenders[1].name, found))


TRANSCRIPTION_MARKER = "figures: written by `cantata bench transcription`"


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
    """Measure how well and how fast recordings are transcribed, beside other recognizers."""
    from cantata_bench.tables import put_between_markers
    from cantata_bench.transcription.run import make_table, measure
    from cantata_bench.voice_quality.run import read_sentences

    try:
        sentences = read_sentences(None)[::every]
        found = measure(voice or ("heart", "clara"), sentences, long_minutes, folder, _print_line)
    except (CantataError, RuntimeError) as error:
        typer.echo(f"cantata: {error}", err=True)
        raise typer.Exit(1) from None
    text = make_table(found)
    typer.echo(text)
    if page is not None:
        put_between_markers(page, TRANSCRIPTION_MARKER, text)


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
        found = measure_uploads(uploads, streams, seconds, folder, _print_line)
    except (CantataError, RuntimeError) as error:
        typer.echo(f"cantata: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(make_uploads_table(found))


VOICES_MARKER = "figures: written by `cantata bench voices`"


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
        figures = judge_models(models, voice or (), sentences, folder, _print_line)
    except (CantataError, RuntimeError) as error:
        typer.echo(f"cantata: {error}", err=True)
        raise typer.Exit(1) from None
    text = make_table(figures)
    typer.echo(text)
    if page is not None:
        put_between_markers(page, VOICES_MARKER, text)
