"""How a command runs and ends: expected errors in one line, signals, exit codes."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
import uvloop

from cantata.cli.files import WrongCall, describe_fault
from cantata.contract.data.errors import CantataError
from cantata.serving.options import LogLevel
from cantata.utils.logs import LogFormat, configure_logging

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class _Signalled(Exception):
    """The command was ended by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_job(command: Coroutine[Any, Any, None]) -> None:
    """Run what ends by itself. SIGTERM and SIGHUP cancel it, so it leaves nothing half done."""
    if threading.current_thread() is not threading.main_thread():
        run(command)  # signals are the main thread's
        return
    try:
        run(_end_on_signals(command))
    except _Signalled as end:
        raise typer.Exit(128 + end.number) from None


def run(command: Coroutine[Any, Any, None]) -> None:
    """Run a command's coroutine; its expected errors become one line."""
    with report_errors():
        uvloop.run(command)


@contextmanager
def report_errors() -> Iterator[None]:
    """Expected errors of the block, and faults of files, end the command with one line."""
    try:
        yield
        sys.stdout.flush()
    except CantataError as error:
        fail(error.message, code=2 if isinstance(error, WrongCall) else 1)
    except BrokenPipeError:
        fail("nobody reads the output any more")
    except OSError as error:
        fault = describe_fault(error)
        if not fault:
            raise
        fail(fault)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the block as an error does: what it started ends with it."""

    def end(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    before = {number: signal.signal(number, end) for number in _ENDING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _end_on_signals(command: Coroutine[Any, Any, None]) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    caught: list[int] = []

    def end(number: int) -> None:
        caught.append(number)
        task.cancel()

    for number in _ENDING_SIGNALS:
        loop.add_signal_handler(number, end, number)
    try:
        await command
    except asyncio.CancelledError:
        if caught:
            raise _Signalled(caught[0]) from None
        raise
    finally:
        for number in _ENDING_SIGNALS:
            loop.remove_signal_handler(number)


def fail(message: str, code: int = 1) -> NoReturn:
    """End with one line on standard error. Code 2: the command was called wrongly."""
    show_error(message)
    raise typer.Exit(code)


def show_error(message: str) -> None:
    """Write one line on standard error."""
    typer.secho(f"cantata: {message}", fg=typer.colors.RED, err=True)


def set_up_logging(
    level: LogLevel = LogLevel.WARNING, log_format: LogFormat = LogFormat.TEXT
) -> None:
    """Log to standard error, by default only what someone should look at."""
    configure_logging(logging.getLevelNamesMapping()[level.name], log_format, "cantata")
    # These log whole addresses and headers, which may contain keys.
    for chatty in ("httpx", "httpcore", "websockets", "python_multipart"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
