"""Firefox over WebDriver BiDi, which it speaks by itself.

Playwright drives only its own builds of Firefox, or newer ones than Debian's; Selenium needs
geckodriver, which Debian does not have.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from websockets.sync.client import ClientConnection, connect

from cantata_bench.server import end

from .server import wait_until

NAMES = ("firefox-esr", "firefox")
READY = "WebDriver BiDi listening on "
ANSWER_DEADLINE_S = 120.0
START_DEADLINE_S = 60.0
PREFERENCES = {
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.normandy.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "browser.safebrowsing.update.enabled": False,
    "extensions.update.enabled": False,
    "toolkit.telemetry.enabled": False,
    # A microphone that hums, which every page may hear.
    "media.navigator.streams.fake": True,
    "media.navigator.permission.disabled": True,
}


def find_firefox() -> str | None:
    """The system's Firefox, where there is PulseAudio too."""
    if shutil.which("pulseaudio") is None:
        return None
    return next(filter(None, map(shutil.which, NAMES)), None)


class Firefox:
    """One tab. Questions are JavaScript expressions whose answers must be JSON."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._sent = 0
        self._command("session.new", capabilities={})
        self._context = self._command("browsingContext.getTree")["contexts"][0]["context"]

    def open(self, url: str) -> None:
        """Go there; returns when the page is loaded."""
        self._command("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def resize(self, width: int, height: int) -> None:
        """Make the page as large as a screen, in CSS pixels."""
        viewport = {"width": width, "height": height}
        self._command("browsingContext.setViewport", context=self._context, viewport=viewport)

    def ask(self, expression: str) -> Any:
        """The value of an expression."""
        answer = self._command(
            "script.evaluate",
            expression=f"JSON.stringify({expression})",
            target={"context": self._context},
            awaitPromise=False,
        )
        if answer["type"] == "exception":
            raise AssertionError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"].get("value", "null"))

    def click(self, selector: str) -> None:
        """Click with the mouse, so that the page may start to make sound."""
        x, y = self.ask(
            f"(({{ x, y, width, height }}) => [x + width / 2, y + height / 2].map(Math.round))"
            f"(document.querySelector({selector!r}).getBoundingClientRect())"
        )
        moves = [
            {"type": "pointerMove", "x": x, "y": y},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        mouse = {"type": "pointer", "id": "mouse", "actions": moves}
        self._command("input.performActions", context=self._context, actions=[mouse])

    def save_screenshot(self, path: Path) -> None:
        """Save a screenshot as PNG."""
        picture = self._command("browsingContext.captureScreenshot", context=self._context)
        path.write_bytes(base64.b64decode(picture["data"]))

    def _command(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._sent += 1
        self._socket.send(json.dumps({"id": self._sent, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(ANSWER_DEADLINE_S))
            if answer.get("id") != self._sent:
                continue  # an event
            if answer["type"] == "error":
                raise AssertionError(f"{method}: {answer['message']}")
            result: dict[str, Any] = answer["result"]
            return result


@contextmanager
def null_sound(folder: Path, *names: str) -> Iterator[str]:
    """Dummy sound devices, for machines without one: PulseAudio's address.

    Firefox plays nothing without a device; Chromium pretends to have one.

    Args:
        folder: for what PulseAudio keeps.
        names: of the devices; none: one without a name.
    """
    address = folder / "sound"
    sinks = [f"module-null-sink sink_name={name}" for name in names] or ["module-null-sink"]
    modules = (*sinks, f"module-native-protocol-unix auth-anonymous=1 socket={address}")
    command = ["pulseaudio", "-n", "--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1"]
    command += [f"--load={module}" for module in modules]
    home = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    with (folder / "pulseaudio.log").open("wb") as log, ended(command, home, stderr=log):
        wait_until(address.exists, START_DEADLINE_S, "PulseAudio listens")
        yield f"unix:{address}"


@contextmanager
def running_firefox(command: str, folder: Path, sound: str) -> Iterator[Firefox]:
    """A Firefox without a window, with a new profile in `folder`, for the time of the block."""
    lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in PREFERENCES.items()]
    (folder / "user.js").write_text("\n".join(lines), encoding="utf-8")
    options = ["--headless", "--no-remote", "--profile", str(folder)]
    started = [command, *options, "--remote-debugging-port", "0"]
    log = folder / "firefox.log"
    with log.open("wb") as errors, ended(started, {"PULSE_SERVER": sound}, stderr=errors):

        def addresses() -> list[str]:
            return re.findall(rf"{READY}(\S+)\n", log.read_text())  # with its end: the whole of it

        wait_until(lambda: bool(addresses()), START_DEADLINE_S, "Firefox listens")
        (address,) = addresses()
        with connect(f"{address}/session", max_size=None) as socket:
            yield Firefox(socket)


@contextmanager
def ended(command: list[str], variables: dict[str, str], stderr: IO[bytes]) -> Iterator[None]:
    """Runs a command for the time of the block."""
    process = subprocess.Popen(command, env={**os.environ, **variables}, stderr=stderr)
    try:
        yield
    finally:
        end(process)
