"""The command `cantata`. Heavy imports stand inside the commands, so that help is instant."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from cantata.contract.errors import CantataError

if TYPE_CHECKING:
    from rich.console import Console

    from cantata.audio.sinks import Pcm, Sink

app = typer.Typer(
    help="Cantata: streaming speech on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class LogLevel(StrEnum):
    """What is logged at least."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def main() -> None:
    """Entry point."""
    app()


@app.command()
def say(
    text: Annotated[str, typer.Argument(help="What to say; - reads it from standard input.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write a sound file instead of playing.")
    ] = None,
    voice: Annotated[str | None, typer.Option(help="Voice; the default is the model's.")] = None,
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
    _configure_logging(LogLevel.WARNING)
    words = sys.stdin.read() if text == "-" else text
    if not words.strip():
        _fail("there is nothing to say", code=2)
    order = _Order(words, out, voice, speed, seed, model, server)
    _run(_say(order, console))


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME_OR_CHECKPOINT", help="Default: the voice that ships with it."),
    ] = None,
    deploy: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Deployment YAML.")
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="What to log at least.")] = LogLevel.INFO,
) -> None:
    """Serve speech over HTTP and WebSocket until interrupted."""
    from rich.console import Console

    _configure_logging(log_level)
    _run(_serve(host, port, model, deploy, Console()))


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


async def _say(order: _Order, console: Console) -> None:
    from cantata.audio.sinks import DeviceSink, FileSink, check_device, check_file

    # Before anything is loaded: whether the sound can go anywhere.
    if order.out is None:
        check_device()
    else:
        check_file(order.out)
    source = _from_server(order) if order.server else _from_here(order, console)
    async with source as sound:
        rate, channels = sound.sample_rate, sound.channels
        sink: Sink
        with (
            FileSink(order.out, rate, channels) if order.out else DeviceSink(rate, channels) as sink
        ):
            samples, ttfp_s, waited_s = await _pour(sound, sink)
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
            pcm = (to_s16(samples) async for samples in utterance)
            yield _Sound(model.sample_rate, model.channels, asked_at, pcm)
    finally:
        await service.stop()


@asynccontextmanager
async def _from_server(order: _Order) -> AsyncIterator[_Sound]:
    """Ask a running server."""
    import httpx

    from cantata.client import ServerError, stream_speech

    named = {"voice": order.voice, "seed": order.seed, "model": order.model}
    options: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    asked_at = time.monotonic()
    try:
        async with stream_speech(
            order.server or "", order.text, speed=order.speed, **options
        ) as stream:
            yield _Sound(stream.sample_rate, stream.channels, asked_at, stream.pcm)
    except (httpx.TransportError, httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise ServerError(f"{order.server}: {error}") from error


async def _serve(
    host: str, port: int, model: str | None, deploy: Path | None, console: Console
) -> None:
    from rich.panel import Panel

    from cantata.api.app import create_app, mount_pages
    from cantata.api.serve import listen, url_of
    from cantata.api.serve import serve as serve_app
    from cantata.engine.service import create_service

    try:
        listener = listen(host, port)
    except OSError as error:
        _fail(f"cannot listen on {host}:{port}: {error.strerror}")
    with listener:
        url = url_of(listener)
        service = create_service(model, deploy)
        web_app = create_app(service)
        console.print(f"loading {', '.join(service.models)} ...", highlight=False)
        # The stages load in their own processes while this one imports the pages.
        web_app.state.context.lifecycle.begin()
        await asyncio.to_thread(mount_pages, web_app)

        def announce() -> None:
            console.print(Panel.fit(f"[bold]{url}[/bold]", title="Cantata is ready"))

        if not await serve_app(web_app, listener, announce):
            _fail(web_app.state.context.lifecycle.error)


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


def _configure_logging(level: LogLevel) -> None:
    logging.basicConfig(
        level=level.value.upper(),
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
    )
