"""The command `cantata`. Heavy imports stand inside the commands, so that help is instant."""

from __future__ import annotations

import logging
import os
import sys
from importlib.metadata import entry_points, version
from typing import Annotated, NoReturn

import typer

from cantata.cli import book_commands, chat_commands, info_commands, media_commands, server_commands
from cantata.cli.files import describe_fault
from cantata.cli.runner import show_error

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Begin with: cantata say Good morning, or: cantata serve. "cantata COMMAND -h" has '
    "examples.",
)

COMMANDS_GROUP = "cantata.commands"
"""Entry points of other packages' commands: Typer apps, light to import."""
_MAKE, _RUN, _LOOK = "Speak, answer, draw, listen", "Serve", "Look and measure"
_EXAMPLES = {
    "say": (
        "cantata say Good morning -o morning.wav",
        "cantata say book.md -o book.mp3 --srt",
        "fortune | cantata say --raw | aplay -r 24000 -f S16_LE",
        "cantata say -f letter.txt --ref-audio me.wav -o letter.flac",
    ),
    "book": (
        "cantata book novel.epub -o novel.m4b",
        "cantata book talk.md -o talk --format flac --captions srt",
        "cantata book play.txt --speaker Alice=ruby --speaker Bob=ben",
    ),
    "chat": (
        "cantata chat",
        "cantata chat What is the capital of France?",
        "cantata chat --speak --voice ewan --model ~/models/Qwen3-0.6B",
        "cantata chat --server http://127.0.0.1:8000 --image photo.jpg What is this?",
    ),
    "talk": (
        "cantata talk",
        "cantata talk --headphones --voice ben --save conversation.md",
        "cantata talk --server http://127.0.0.1:8000 --model smollm2",
    ),
    "draw": (
        "cantata draw red apple -o apple.png",
        'cantata draw "paint the door green" --edit house.png --model FOLDER',
    ),
    "transcribe": (
        "cantata transcribe talk.mp3 -o talk.srt",
        "cantata transcribe --microphone",
    ),
    "voices": ("cantata voices", "cantata voices --server http://127.0.0.1:8000 --json"),
    "models": ("cantata models", "cantata models --json"),
    "serve": (
        "cantata serve",
        "cantata serve --model ~/models/Qwen3-TTS --port 9000",
        "cantata serve --host 0.0.0.0 --api-key-file keys.txt",
    ),
    "replica": ("cantata replica --listen 127.0.0.1:8100",),
    "stage-host": ("cantata stage-host --listen 127.0.0.1:8200",),
    "deploy": ("cantata deploy cluster.yaml --print serve",),
    "verify": ("cantata verify picture.png", "cantata verify speech.mp3 --json"),
    "certificate": ("cantata certificate trial",),
    "doctor": ("cantata doctor", "cantata doctor --model ~/models/Qwen3-TTS"),
}


def _format_examples(command: str) -> str:
    lines = "\n\n".join(line.replace("[", "\\[") for line in _EXAMPLES[command])
    return f"Examples:\n\n{lines}"


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cantata {version('cantata')}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Cantata: a streaming server of speech, answers and pictures."""


for _name, _command, _panel in (
    ("say", media_commands.say, _MAKE),
    ("book", book_commands.book, _MAKE),
    ("chat", chat_commands.chat, _MAKE),
    ("talk", chat_commands.talk, _MAKE),
    ("draw", media_commands.draw, _MAKE),
    ("transcribe", media_commands.transcribe, _MAKE),
    ("serve", server_commands.serve, _RUN),
    ("replica", server_commands.replica, _RUN),
    ("stage-host", server_commands.stage_host, _RUN),
    ("deploy", server_commands.deploy, _RUN),
    ("voices", info_commands.voices, _LOOK),
    ("models", info_commands.models, _LOOK),
    ("verify", info_commands.verify, _LOOK),
    ("certificate", info_commands.certificate, _LOOK),
    ("doctor", info_commands.doctor, _LOOK),
):
    app.command(_name, rich_help_panel=_panel, epilog=_format_examples(_name))(_command)


def main() -> None:
    """Entry point."""
    for command in entry_points(group=COMMANDS_GROUP):
        app.add_typer(command.load(), name=command.name, rich_help_panel=_LOOK)
    try:
        app(prog_name="cantata")
    except SystemExit as ending:
        _end(ending.code)
    except OSError as error:  # of what no command has explained, such as help on a full disk
        fault = describe_fault(error)
        if not fault:
            raise
        show_error(fault if error.filename else f"standard output: {fault}")
        _end(1)


def _end(code: int | str | None) -> NoReturn:
    try:
        sys.stdout.flush()
    except OSError as error:
        if not code:
            show_error(f"standard output: cannot be written ({error.strerror})")
            code = 1
        # Python writes the rest once more when it ends, and would complain in lines of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if "cantata.pipeline.local" in sys.modules and isinstance(code, int):
        # Tearing down torch's libraries takes as long as a short sentence, without any benefit.
        logging.shutdown()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
