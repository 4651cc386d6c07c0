"""A server of this machine's models, for the time of a command that needs a whole one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from socket import socket

import httpx
from rich.console import Console

from cantata.cli.progress import show_loading
from cantata.contract.data.errors import CantataError, ConfigError

_READY_S = 600.0
_POLL_S = 0.1
_END_S = 20.0
_SHOWN_LINES = 5


class ServerFailed(CantataError):
    """The server of a command could not be started."""

    code = "server_failed"


@contextmanager
def open_server(models: Sequence[str], console: Console) -> Iterator[str]:
    """Serve models on this machine's loopback address; they end with the block.

    Args:
        models: as `cantata serve --model` takes them.

    Yields:
        The server's address, once they are ready.

    Raises:
        ServerFailed: they could not be started; has the server's own words.
    """
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    named = [option for model in models for option in ("--model", model)]
    command = [sys.executable, "-m", "cantata", "serve", "--port", str(port), *named]
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        # A group of its own: Ctrl-C stops an answer, and not the server.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0
        )
        try:
            with show_loading(console):
                is_ready = _wait(f"http://127.0.0.1:{port}", process)
            if not is_ready:
                log.seek(0)
                lines = log.read().strip().splitlines()[-_SHOWN_LINES:]
                raise ServerFailed("the model could not be started: " + " | ".join(lines))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(url: str, process: subprocess.Popen[bytes]) -> bool:
    """Whether the server is ready in time, and still there."""
    give_up = time.monotonic() + _READY_S
    with httpx.Client(verify=False, timeout=5) as http:
        while time.monotonic() < give_up and process.poll() is None:
            try:
                if http.get(f"{url}/ready").status_code == httpx.codes.OK:
                    return True
            except httpx.TransportError:
                pass  # it does not listen yet
            time.sleep(_POLL_S)
    return False


def choose_mind(model: str | None) -> str:
    """The model that answers: the named one, or the first here that has its weights. Raises
    ConfigError: there is none; says how to get one."""
    from cantata.config.plugins import find_install_command, find_weights, load_plugins

    if model is not None:
        return model
    installs: list[str] = []
    for name, plugin in sorted(load_plugins().items()):
        if plugin.load_chat_builder is None:
            continue
        if find_weights(plugin) is not None:
            return name
        command = find_install_command(plugin)
        installs += [] if command is None else [command]
    ways = [*installs, "--model FOLDER", "--server URL"]
    raise ConfigError(f"no model that answers has its weights here; {', or '.join(ways)}")


def choose_voice_model(voice: str | None) -> str:
    """The model here that speaks, with this voice if one is named. Raises ConfigError: no model is
    the default."""
    from cantata.config.plugins import locate
    from cantata.pipeline.local import find_model

    named = None if voice is None else find_model(voice)
    return named or locate(None).plugin.name
