"""The command `cantata`. Heavy imports stand inside the commands, so that help is instant."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from dataclasses import replace
from enum import StrEnum
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from cantata.contract.data.errors import CantataError
from cantata.logs import LogFormat, configure_logging

if TYPE_CHECKING:
    import socket

    from rich.console import Console

    from cantata.api.operator import OperatorOptions
    from cantata.config import Dtype as NumberFormat

app = typer.Typer(
    help="Cantata: streaming speech on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Dtype(StrEnum):
    """Numbers that a model computes with."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


COMMANDS_GROUP = "cantata.commands"
"""Entry points of other packages' commands: Typer apps, light to import."""


class LogLevel(StrEnum):
    """What is logged at least."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def main() -> None:
    """Entry point."""
    for command in entry_points(group=COMMANDS_GROUP):
        app.add_typer(command.load(), name=command.name)
    try:
        app()
    except SystemExit as ending:
        if "cantata.engine.local" in sys.modules and isinstance(ending.code, int):
            # Tearing down torch's libraries takes as long as a short sentence, without any benefit.
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ending.code)
        raise


@app.command()
def say(
    text: Annotated[
        str | None, typer.Argument(help="What to say; - reads it from standard input.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "-f", "--file", exists=True, dir_okay=False, allow_dash=True, help="Say a text file."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write a sound file instead of playing.")
    ] = None,
    voice: Annotated[str | None, typer.Option(help="Voice; the default is the model's.")] = None,
    timestamps: Annotated[
        Path | None, typer.Option(help="Write word times: .json, .srt or .vtt.")
    ] = None,
    speed: Annotated[float, typer.Option(min=0.25, max=4.0, help="1: the voice's own.")] = 1.0,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same sound.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Model's name or checkpoint folder (a name with --server).")
    ] = None,
    server: Annotated[
        str | None, typer.Option(help="URL of a running server, instead of loading the model here.")
    ] = None,
) -> None:
    """Speak a text, on the sound device or into a file."""
    from rich.console import Console

    from cantata.say import Order
    from cantata.say import say as say_order

    console = Console(stderr=True)
    _configure_logging(LogLevel.WARNING, LogFormat.TEXT)
    order = Order(_read(text, file), out, timestamps, voice, speed, seed, model, server)
    _run(say_order(order, console))


@app.command()
def draw(
    prompt: Annotated[str, typer.Argument(help="What the picture shows.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="The file: .png, .jpg, .jpeg or .webp.")
    ] = Path("picture.png"),
    size: Annotated[
        str | None, typer.Option(metavar="WIDTHxHEIGHT", help="Pixels; the default is the model's.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same picture.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Of denoising.")] = None,
    negative: Annotated[str | None, typer.Option(help="What the picture shall not show.")] = None,
    guidance: Annotated[
        float | None, typer.Option(min=1, help="How close to the prompt; 1 is no guidance.")
    ] = None,
    edit: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="A picture to edit. Repeatable."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model's name or checkpoint folder (a name with --server).")
    ] = None,
    server: Annotated[
        str | None, typer.Option(help="URL of a running server, instead of loading the model here.")
    ] = None,
) -> None:
    """Draw a picture from a prompt, or edit one."""
    from rich.console import Console

    from cantata.draw import Order
    from cantata.draw import draw as draw_order

    _configure_logging(LogLevel.WARNING, LogFormat.TEXT)
    order = Order(
        prompt, out, tuple(edit or ()), size, seed, steps, negative, guidance, model, server
    )
    _run(draw_order(order, Console(stderr=True)))


def _read(text: str | None, file: Path | None) -> str:
    if (text is None) == (file is None):
        _fail("give a text to speak, or a file with -f", code=2)
    if text == "-" or file == Path("-"):
        read = sys.stdin.read()
    elif file is not None:
        try:
            read = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            _fail(f"{file}: not a text file in UTF-8 ({error})")
    else:
        read = text or ""
    if not read.strip():
        _fail("there is nothing to say", code=2)
    return read


Models = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME_OR_CHECKPOINT", help="Repeatable. Default: all that ship with weights."
    ),
]
Deployments = Annotated[
    list[Path] | None,
    typer.Option(
        exists=True, dir_okay=False, help="Deployment YAML; of each model, in their order."
    ),
]


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    model: Models = None,
    dtype: Annotated[
        Dtype | None, typer.Option(help="Number format; overrides the deployment.")
    ] = None,
    deploy: Deployments = None,
    wyoming_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Serve Wyoming (Home Assistant) too, commonly on 10200."
        ),
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="API keys, one per line; also from CANTATA_API_KEYS, comma-separated.",
        ),
    ] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Listen beyond this machine without API keys.")
    ] = False,
    private_lists: Annotated[
        bool, typer.Option("--private-lists", help="List models and voices with a key only.")
    ] = False,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="A site whose pages may use this server. Repeatable."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A name of this server, where it has no API keys. Repeatable."
        ),
    ] = None,
    max_concurrent_per_key: Annotated[
        int | None, typer.Option(min=1, help="Requests that one API key may have open.")
    ] = None,
    voices_dir: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Uploaded voices. Default: the user's data folder."),
    ] = None,
    allow_ref_urls: Annotated[
        bool,
        typer.Option("--allow-ref-urls", help="Fetch recordings and media from public addresses."),
    ] = False,
    ref_url_port: Annotated[
        list[int] | None,
        typer.Option(min=1, max=65535, help="A port to fetch from besides 80, 443. Repeatable."),
    ] = None,
    chat_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Answers in /v1/realtime: a base address of OpenAI's shape."
        ),
    ] = None,
    chat_model: Annotated[str | None, typer.Option(help="Its model.")] = None,
    transcription_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Hears words in /v1/realtime: a base address, too."),
    ] = None,
    transcription_model: Annotated[str | None, typer.Option(help="Its model.")] = None,
    drain_timeout: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="For running utterances to end, on SIGTERM."),
    ] = 60.0,
    log_level: Annotated[LogLevel, typer.Option(help="Minimum level to log.")] = LogLevel.INFO,
    log_format: Annotated[
        LogFormat, typer.Option(help="Text, or JSON with one record per line.")
    ] = LogFormat.TEXT,
) -> None:
    """Serve speech over HTTP and WebSocket until interrupted."""
    from rich.console import Console

    _configure_logging(log_level, log_format)
    from cantata.api import operator

    options = operator.OperatorOptions(
        api_keys=os.environ.get(operator.KEYS_VARIABLE, ""),
        api_key_file=api_key_file,
        no_auth=no_auth,
        private_lists=private_lists,
        allow_origins=tuple(allow_origin or ()),
        allow_hosts=tuple(allow_host or ()),
        max_concurrent_per_key=max_concurrent_per_key,
        voices_dir=voices_dir,
        allow_ref_urls=allow_ref_urls,
        ref_url_ports=tuple(ref_url_port or ()),
        drain_timeout_s=drain_timeout,
        chat=operator.chat_endpoint(chat_url, chat_model),
        transcription=operator.transcription_endpoint(transcription_url, transcription_model),
    )
    number_format: NumberFormat | None = dtype.value if dtype else None
    served = (model or [], deploy or [], number_format)
    _run(_serve(host, port, served, wyoming_port, options, log_format, Console()))


@app.command()
def doctor(
    model: Annotated[
        str | None, typer.Option(help="A model to check too: its files, its decoder's memory.")
    ] = None,
    deploy: Annotated[Path | None, typer.Option(help="How it is to be deployed.")] = None,
) -> None:
    """Check this installation; exit code 1 if something must be fixed."""
    from rich.console import Console

    from cantata.doctor import render, run_checks

    checks = run_checks()
    if model is not None:
        from cantata.doctor_model import check_model

        checks += check_model(model, deploy)
    Console().print(render(checks))
    if any(check.failed for check in checks):
        raise typer.Exit(1)


async def _serve(
    host: str,
    port: int,
    served: tuple[list[str], list[Path], NumberFormat | None],
    wyoming_port: int | None,
    options: OperatorOptions,
    log_format: LogFormat,
    console: Console,
) -> None:
    from rich.panel import Panel

    from cantata.api.listening import url_of
    from cantata.api.operator import settings_for
    from cantata.engine.plan import plan_services, preload_stages

    listener = _listen(host, port)
    with listener:
        url = url_of(listener)
        plans = plan_services(*served)
        deployed = plans[0].deployment.realtime
        options = replace(
            options,
            chat=options.chat.otherwise(deployed.chat_url, deployed.chat_model),
            transcription=options.transcription.otherwise(
                deployed.transcription_url, deployed.transcription_model
            ),
        )
        settings = settings_for(options, listener.getsockname()[0])
        wyoming = None
        if wyoming_port is not None:
            # Its clients cannot send a key: where keys are required, they must be on this machine.
            wyoming_host = "127.0.0.1" if settings.security.api_keys else host
            wyoming = _listen_wyoming(wyoming_host, wyoming_port)
        # Without a name, what ships with weights is served. Nobody has to wait for all of it.
        first, later = (plans, []) if served[0] else (plans[:1], plans[1:])
        preload_stages(first)
        # The stages' imports have begun; the following ones take seconds too.
        from cantata.api.app import create_app, mount_pages
        from cantata.api.serve import serve as serve_app
        from cantata.engine.service import create_service

        service = create_service(*first, later=later, log_format=log_format)
        web_app = create_app(service, settings, wyoming=wyoming)
        names = ", ".join(plan.located.plugin.name for plan in plans)
        console.print(f"loading {names} ...", highlight=False)
        # The stages load in their own processes while this one imports the pages.
        web_app.state.context.lifecycle.begin()
        await asyncio.to_thread(mount_pages, web_app)

        def announce() -> None:
            console.print(Panel.fit(f"[bold]{url}[/bold]", title="Cantata is ready"))
            if wyoming is not None:
                where = "{}:{}".format(*wyoming.getsockname()[:2])
                console.print(f"Wyoming on {where}", highlight=False)

        if not await serve_app(web_app, listener, announce):
            _fail(web_app.state.context.lifecycle.error)


def _listen(host: str, port: int) -> socket.socket:
    from cantata.api.listening import listen

    try:
        return listen(host, port)
    except OSError as error:
        _fail(f"cannot listen on {host}:{port}: {error.strerror}")


def _listen_wyoming(host: str, port: int) -> socket.socket:
    if find_spec("wyoming") is None:
        _fail("Wyoming needs the package wyoming: pip install 'cantata[wyoming]'")
    return _listen(host, port)


def _run(command: Any) -> None:
    """Run a command's coroutine; its expected errors become one line."""
    try:
        asyncio.run(command)
    except CantataError as error:
        _fail(error.message)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _fail(message: str, code: int = 1) -> NoReturn:
    typer.secho(f"cantata: {message}", fg=typer.colors.RED, err=True)
    raise typer.Exit(code)


def _configure_logging(level: LogLevel, log_format: LogFormat) -> None:
    configure_logging(logging.getLevelNamesMapping()[level.name], log_format, "cantata")
    # These log whole addresses and headers, which may contain keys.
    for chatty in ("httpx", "httpcore", "websockets", "python_multipart"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
