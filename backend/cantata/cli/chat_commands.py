"""The commands that converse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cantata.cli.media_commands import (
    MODEL,
    OUTPUT,
    VOICE,
    InputDevice,
    ModelOrFolder,
    Quiet,
    ServerUrl,
    VoiceName,
)
from cantata.cli.runner import fail, report_errors, set_up_logging


def chat(
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="One question; its answer ends the command. Nothing: questions are typed, or "
            "read from standard input."
        ),
    ] = None,
    image: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="Show a picture with it. Repeatable."),
    ] = None,
    speak: Annotated[
        bool,
        typer.Option("--speak", help="Play the answers, too.", rich_help_panel=VOICE),
    ] = False,
    voice: VoiceName = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="Write the voice to a sound file instead of playing it.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    quiet: Quiet = False,
    instructions: Annotated[
        str | None,
        typer.Option(help="What the model is to be and do.", rich_help_panel=MODEL),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1, help="Longest answer, in tokens. Default: the model's.", rich_help_panel=MODEL
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0, max=2, help="0 always takes the likeliest word.", rich_help_panel=MODEL
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="The same seed gives the same answer.", rich_help_panel=MODEL),
    ] = None,
    model: ModelOrFolder = None,
    server: ServerUrl = None,
) -> None:
    """Converse with a model in writing; it may speak, too."""
    from rich.console import Console

    from cantata.cli.chat import ChatArguments
    from cantata.cli.chat import chat as converse

    if voice is not None and not speak and out is None:
        fail("--voice needs --speak, or a file with -o", code=2)
    set_up_logging()
    options = ChatArguments(
        text=" ".join(text or ()),
        pictures=tuple(image or ()),
        instructions=instructions,
        speaks=speak,
        out=out,
        voice=voice,
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed,
        model=model,
        server=server,
    )
    with report_errors():
        converse(options, Console(stderr=True, quiet=quiet))


def talk(
    instructions: Annotated[
        str | None,
        typer.Option(help="What the model is to be and do.", rich_help_panel=MODEL),
    ] = None,
    voice: VoiceName = None,
    headphones: Annotated[
        bool,
        typer.Option(
            "--headphones",
            help="The microphone does not hear the answers: speaking interrupts them. Otherwise it "
            "is deaf while they sound.",
        ),
    ] = False,
    input_device: InputDevice = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md", help="Write the conversation down.", rich_help_panel=OUTPUT
        ),
    ] = None,
    quiet: Quiet = False,
    model: ModelOrFolder = None,
    server: ServerUrl = None,
) -> None:
    """Converse with a model by voice."""
    from rich.console import Console

    from cantata.cli.talk import TalkArguments
    from cantata.cli.talk import talk as converse

    if save is not None and not save.absolute().parent.is_dir():
        fail(f"--save {save}: there is no folder {save.parent}")
    set_up_logging()
    options = TalkArguments(instructions, voice, model, server, input_device, headphones, save)
    with report_errors():
        converse(options, Console(stderr=True, quiet=quiet))
