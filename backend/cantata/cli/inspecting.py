"""The commands that tell what there is: voices, models, the state of the installation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cantata.cli.making import MODEL, ModelOrFolder
from cantata.cli.running import run, set_up_logging

ServerUrl = Annotated[
    str | None,
    typer.Option(help="List those of the server at this URL.", rich_help_panel=MODEL),
]
AsJson = Annotated[bool, typer.Option("--json", help="For programs: a list of JSON objects.")]


def voices(model: ModelOrFolder = None, server: ServerUrl = None, as_json: AsJson = False) -> None:
    """List voices: what --voice takes."""
    from cantata.cli.listing import show_voices

    set_up_logging()
    run(show_voices(model, server, as_json))


def models(server: ServerUrl = None, as_json: AsJson = False) -> None:
    """List models: what --model takes."""
    from cantata.cli.listing import show_models

    set_up_logging()
    run(show_models(server, as_json))


def doctor(
    model: Annotated[
        str | None,
        typer.Option(help="Also check this model's files and its decoder's memory."),
    ] = None,
    deploy: Annotated[
        Path | None, typer.Option(help="Deployment file for --model. Default: the model's own.")
    ] = None,
) -> None:
    """Check this installation. The exit code is 1 if something must be fixed."""
    from rich.console import Console

    from cantata.cli.doctor import render, run_checks, summarize

    checks = run_checks()
    if model is not None:
        from cantata.cli.doctor_model import check_model

        checks += check_model(model, deploy)
    console = Console()
    console.print(render(checks))
    console.print(summarize(checks), highlight=False)
    if any(check.failed for check in checks):
        raise typer.Exit(1)
