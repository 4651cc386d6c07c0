"""The command `cantata`. Heavy imports stand inside the commands, so that help is instant."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from cantata.contract.errors import CantataError
from cantata.logs import LogFormat, configure_logging

if TYPE_CHECKING:
    import socket

    from rich.console import Console

    from cantata.api.operator import OperatorOptions
    from cantata.audio.sinks import Pcm, Sink
    from cantata.contract.service import SpokenWord

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
    app()


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
        Path | None, typer.Option(help="Write when words are heard: .json, .srt or .vtt.")
    ] = None,
    speed: Annotated[float, typer.Option(min=0.25, max=4.0, help="1 is the voice's own.")] = 1.0,
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

    console = Console(stderr=True)
    _configure_logging(LogLevel.WARNING, LogFormat.TEXT)
    order = _Order(_read(text, file), out, timestamps, voice, speed, seed, model, server)
    _run(_say(order, console))


def _read(text: str | None, file: Path | None) -> str:
    if (text is None) == (file is None):
        _fail("say what to speak: a text, or a file with -f", code=2)
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


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME_OR_CHECKPOINT", help="Default: the voice that ships with it."),
    ] = None,
    dtype: Annotated[
        Dtype | None, typer.Option(help="Compute with these numbers, not the deployment's.")
    ] = None,
    deploy: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Deployment YAML.")
    ] = None,
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
            help="API keys, one on each line; also from CANTATA_API_KEYS, separated by commas.",
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
    max_concurrent_per_key: Annotated[
        int | None, typer.Option(min=1, help="Requests that one API key may have open.")
    ] = None,
    voices_dir: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Uploaded voices. Default: the user's data folder."),
    ] = None,
    allow_ref_urls: Annotated[
        bool, typer.Option("--allow-ref-urls", help="Fetch recordings from public addresses.")
    ] = False,
    ref_url_port: Annotated[
        list[int] | None,
        typer.Option(min=1, max=65535, help="A port to fetch from beside 80, 443. Repeatable."),
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="What to log at least.")] = LogLevel.INFO,
    log_format: Annotated[
        LogFormat, typer.Option(help="Text, or JSON with a line for each record.")
    ] = LogFormat.TEXT,
) -> None:
    """Serve speech over HTTP and WebSocket until interrupted."""
    from rich.console import Console

    _configure_logging(log_level, log_format)
    from cantata.api.operator import KEYS_VARIABLE, OperatorOptions

    options = OperatorOptions(
        api_keys=os.environ.get(KEYS_VARIABLE, ""),
        api_key_file=api_key_file,
        no_auth=no_auth,
        private_lists=private_lists,
        allow_origins=tuple(allow_origin or ()),
        max_concurrent_per_key=max_concurrent_per_key,
        voices_dir=voices_dir,
        allow_ref_urls=allow_ref_urls,
        ref_url_ports=tuple(ref_url_port or ()),
    )
    _run(_serve(host, port, model, deploy, dtype, wyoming_port, options, log_format, Console()))


@app.command()
def doctor() -> None:
    """Check this installation; exit code 1 when something must be mended."""
    from rich.console import Console

    from cantata.doctor import render, run_checks

    checks = run_checks()
    Console().print(render(checks))
    if any(check.failed for check in checks):
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class _Order:
    text: str
    out: Path | None
    timestamps: Path | None
    voice: str | None
    speed: float
    seed: int | None
    model: str | None
    server: str | None


@dataclass(frozen=True, slots=True)
class _Sound:
    sample_rate: int
    channels: int
    asked_at: float
    """By `time.monotonic`."""
    pcm: AsyncIterator[Pcm]
    words: list[SpokenWord]
    """Grows while `pcm` is read."""


async def _say(order: _Order, console: Console) -> None:
    from cantata.audio.captions import check_captions, write_captions
    from cantata.audio.sinks import DeviceSink, FileSink, check_device, check_file

    # Before anything is loaded: whether the sound can go anywhere.
    if order.out is None:
        check_device()
    else:
        check_file(order.out)
    if order.timestamps is not None:
        check_captions(order.timestamps)
    source = _from_server(order) if order.server else _from_here(order, console)
    async with source as sound:
        rate, channels = sound.sample_rate, sound.channels
        sink: Sink
        with (
            FileSink(order.out, rate, channels) if order.out else DeviceSink(rate, channels) as sink
        ):
            samples, ttfp_s, waited_s = await _pour(sound, sink)
    if order.timestamps is not None:
        write_captions(order.timestamps, order.text, sound.words)
    duration_s = samples / rate
    where = f" in {order.out}" if order.out else ""
    console.print(
        f"{duration_s:.2f} s of sound{where}: first after {ttfp_s * 1000:.0f} ms (TTFP), "
        f"RTF {waited_s / max(duration_s, 1e-9):.3f}",
        highlight=False,
    )


async def _pour(sound: _Sound, sink: Sink) -> tuple[int, float, float]:
    """Samples, seconds to the first of them, and seconds spent waiting for all of them."""
    samples, ttfp_s, waited_s = 0, 0.0, 0.0
    waiting_since = sound.asked_at
    async for pcm in sound.pcm:
        waited_s += time.monotonic() - waiting_since
        ttfp_s = ttfp_s or waited_s
        samples += len(pcm)
        await asyncio.to_thread(sink.write, pcm)
        waiting_since = time.monotonic()
    return samples, ttfp_s, waited_s


@asynccontextmanager
async def _from_here(order: _Order, console: Console) -> AsyncIterator[_Sound]:
    """Load the model in this process, and unload it afterwards."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from cantata.audio.pcm import to_s16
    from cantata.contract.request import SpeechRequest
    from cantata.engine.service import create_service

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task("loading the voice")
        service = create_service(order.model, None)
        try:
            await service.start()
        except BaseException:
            await service.stop()
            raise
    try:
        model = service.model(service.default_model)
        voice = model.voice(order.voice).id
        request = SpeechRequest(order.text, voice, speed=order.speed, seed=order.seed)
        asked_at = time.monotonic()
        async with model.speak(request, batch=order.out is not None) as utterance:
            words: list[SpokenWord] = []

            async def heard() -> AsyncIterator[Pcm]:
                async for chunk in utterance:
                    words.extend(chunk.words)
                    yield to_s16(chunk.samples)

            yield _Sound(model.sample_rate, model.channels, asked_at, heard(), words)
    finally:
        await service.stop()


@asynccontextmanager
async def _from_server(order: _Order) -> AsyncIterator[_Sound]:
    """Ask a running server."""
    import httpx

    from cantata.client import KEY_VARIABLE, ServerError, stream_speech

    named = {"voice": order.voice, "seed": order.seed, "model": order.model}
    options: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    if order.timestamps is not None:
        options["timestamps"] = True
    asked_at = time.monotonic()
    try:
        async with stream_speech(
            order.server or "",
            order.text,
            api_key=os.environ.get(KEY_VARIABLE),
            speed=order.speed,
            **options,
        ) as stream:
            yield _Sound(stream.sample_rate, stream.channels, asked_at, stream.pcm, stream.words)
    except (httpx.TransportError, httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise ServerError(f"{order.server}: {error}") from error


async def _serve(
    host: str,
    port: int,
    model: str | None,
    deploy: Path | None,
    dtype: Dtype | None,
    wyoming_port: int | None,
    options: OperatorOptions,
    log_format: LogFormat,
    console: Console,
) -> None:
    from rich.panel import Panel

    from cantata.api.app import create_app, mount_pages
    from cantata.api.operator import settings_for
    from cantata.api.serve import serve as serve_app
    from cantata.api.serve import url_of
    from cantata.engine.service import create_service

    listener = _listen(host, port)
    with listener:
        url = url_of(listener)
        settings = settings_for(options, listener.getsockname()[0])
        wyoming = None
        if wyoming_port is not None:
            # Its clients can show no key: where one is needed, they must be on this machine.
            wyoming_host = "127.0.0.1" if settings.security.api_keys else host
            wyoming = _listen_wyoming(wyoming_host, wyoming_port)
        service = create_service(model, deploy, dtype.value if dtype else None, log_format)
        web_app = create_app(service, settings, wyoming=wyoming)
        console.print(f"loading {', '.join(service.models)} ...", highlight=False)
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
    from cantata.api.serve import listen

    try:
        return listen(host, port)
    except OSError as error:
        _fail(f"cannot listen on {host}:{port}: {error.strerror}")


def _listen_wyoming(host: str, port: int) -> socket.socket:
    if find_spec("wyoming") is None:
        _fail("Wyoming needs the package wyoming: pip install 'cantata[wyoming]'")
    return _listen(host, port)


def _run(command: Any) -> None:
    """Run a command's coroutine; what it raises on purpose becomes one line."""
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
    # These write whole addresses and headers, in which there may be keys.
    for chatty in ("httpx", "httpcore", "websockets", "python_multipart"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
