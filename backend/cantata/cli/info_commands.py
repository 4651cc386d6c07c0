"""The commands that tell what there is: voices, models, the state of the installation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cantata.cli.media_commands import MODEL, ModelOrFolder
from cantata.cli.runner import fail, run, set_up_logging
from cantata.serving.options import WatermarkKey

if TYPE_CHECKING:
    from cantata.media.provenance import Provenance

ServerUrl = Annotated[
    str | None,
    typer.Option(help="List those of the server at this URL.", rich_help_panel=MODEL),
]
AsJson = Annotated[bool, typer.Option("--json", help="For programs: a list of JSON objects.")]


def voices(model: ModelOrFolder = None, server: ServerUrl = None, as_json: AsJson = False) -> None:
    """List voices: what --voice takes."""
    from cantata.cli.catalogue import show_voices

    set_up_logging()
    run(show_voices(model, server, as_json))


def models(server: ServerUrl = None, as_json: AsJson = False) -> None:
    """List models: what --model takes."""
    from cantata.cli.catalogue import show_models

    set_up_logging()
    run(show_models(server, as_json))


def verify(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Picture or sound.")],
    as_json: AsJson = False,
    watermark_key: WatermarkKey = None,
) -> None:
    """Say whether a picture or a sound file declares that a machine made it."""
    import json
    from dataclasses import asdict

    from cantata.contract.data.errors import ConfigError, InvalidMedia
    from cantata.media.provenance import find_provenance
    from cantata.watermark.detection import find_mark_in_file
    from cantata.watermark.pattern import draw_signs, read_key

    try:
        data = file.read_bytes()
        found = find_provenance(data)
        signs = draw_signs(read_key(watermark_key))
    except InvalidMedia as error:
        fail(f"{file}: {error}", code=1)
    except ConfigError as error:
        fail(error.message, code=2)
    mark = find_mark_in_file(data, signs) if found.kind == "audio" else None
    if as_json:
        marked = None if mark is None else asdict(mark)
        typer.echo(json.dumps({**asdict(found), "watermark": marked}))
        return
    said = {
        True: "declares that a machine made it",
        False: "declares that no machine made it",
        None: "says nothing of how it was made",
    }[found.synthetic]
    details = [one for one in (found.digital_source_type, found.software) if one]
    typer.echo(f"{file} {said}" + (f" ({', '.join(details)})" if details else ""))
    typer.echo(_describe_signature(found))
    if mark is not None and mark.found:
        whose = "Cantata's" if watermark_key is None else "this key's"
        typer.echo(f"Its sound has {whose} mark ({mark.score:.0f} standard deviations).")


def _describe_signature(found: Provenance) -> str:
    manifest = found.manifest
    if manifest is None:
        tags = "Anyone can write or remove such tags: they prove nothing."
        unread = "It seems to have a C2PA manifest; to read it: pip install 'cantata[provenance]'."
        return f"{unread}\n{tags}" if found.c2pa else tags
    problems = ", ".join(manifest.problems)
    match manifest.state:
        case "valid" if manifest.self_signed:
            return "Its C2PA manifest is self-signed, for a trial, and fits the file."
        case "valid":
            return (
                f"Its C2PA manifest fits the file and is signed by {manifest.signer}; whether "
                "they are who they say is not checked here."
            )
        case "invalid":
            return f"Its C2PA manifest does not fit the file: {problems}."
        case _:
            return f"Its C2PA manifest cannot be read: {problems}."


def certificate(
    folder: Annotated[Path, typer.Argument(help="Where to write certificate.pem and key.pem.")],
) -> None:
    """Make a certificate for a trial of --provenance signed. Nobody vouches for it."""
    from cantata.contract.data.errors import CantataError
    from cantata.media.certificates import write_trial_certificate

    try:
        chain, key = write_trial_certificate(folder)
    except CantataError as error:
        fail(error.message)
    typer.echo(
        f"Self-signed, valid for a year. Now: cantata serve --provenance signed "
        f"--signing-certificate {chain} --signing-key {key}"
    )


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

    if model is None:
        checks = run_checks()
    else:
        from cantata.cli.doctor_model import check_model, needs_vllm

        checks = run_checks(needs_vllm=needs_vllm(model, deploy)) + check_model(model, deploy)
    console = Console()
    console.print(render(checks))
    console.print(summarize(checks), highlight=False)
    if any(check.failed for check in checks):
        raise typer.Exit(1)
