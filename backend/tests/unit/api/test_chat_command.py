"""`cantata chat`: words, sound, commands and keys, with a real server over fake models."""

from __future__ import annotations

import asyncio
import base64
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import soundfile
from fake_chat import collect_sound
from fake_service import eventually
from live_server import Server
from typer.testing import CliRunner, Result

from cantata.cli.app import app
from cantata.contract.data.chat import Role

WAIT_S = 60.0


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["chat", *arguments], input=stdin)


async def run_beside(server: Server, *arguments: str, stdin: str | None = None) -> Result:
    return await asyncio.to_thread(run, *arguments, "--server", server.url, stdin=stdin)


async def test_one_question(server: Server) -> None:
    result = await run_beside(server, "Is", "it", "on?", "--instructions", "Be brief.")
    assert result.exit_code == 0, result.output
    assert result.stdout == "Is it on?\n"
    (request,) = server.service.omni.counts.requests
    assert [message.role for message in request.messages] == [Role.SYSTEM, Role.USER]


async def test_a_question_on_standard_input(server: Server) -> None:
    options = ("--seed", "4", "--temperature", "0", "--max-tokens", "2")
    result = await run_beside(server, *options, stdin="abcdefgh\n")
    assert result.stdout == "abcdef\n"
    (request,) = server.service.omni.counts.requests
    assert (request.seed, request.temperature) == (4, 0)


async def test_the_voice_in_a_file(server: Server, tmp_path: Path) -> None:
    out, text = tmp_path / "answer.wav", "The kettle is on."
    result = await run_beside(server, text, "-o", str(out), "--voice", "ethan", "--model", "omni")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{text}\n"
    samples, rate = soundfile.read(out)
    pieces = [text[start : start + 3] for start in range(0, len(text), 3)]
    expected = np.concatenate([collect_sound(piece, 400) for piece in pieces])
    assert rate == 24_000
    assert len(samples) == pytest.approx(len(expected) * 1.5, abs=2)  # of 16 kHz


async def test_a_picture_is_shown(server: Server, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(
        base64.b64decode(
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
        )
    )
    result = await run_beside(server, "What is it?", "--image", str(picture), "--model", "omni")
    assert result.exit_code == 0, result.output
    (request,) = server.service.omni.counts.requests
    assert len(request.messages[0].parts) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["Hi", "--voice", "ethan"], 2, "--voice needs --speak"),
        (["Hi", "--server", "http://127.0.0.1:1"], 1, "http://127.0.0.1:1: cannot be reached"),
        (["Hi", "--server", "there"], 2, "such as http://127.0.0.1:8000"),
        (["Hi", "-o", "x.xyz", "--server", "x"], 2, "must end with a sound format"),
        (["Hi", "-o", "no/such/folder/x.wav", "--server", "x"], 1, "there is no folder"),
        (["", "--server", "http://127.0.0.1:1"], 1, "nothing to answer"),
        (["Hi", "--model", "quartet"], 1, "model 'quartet' does not answer"),
        (["Hi", "--model", "nonsense"], 1, "'nonsense'"),
    ],
)
def test_mistakes_end_in_one_clear_line(arguments: list[str], code: int, message: str) -> None:
    result = run(*arguments, stdin="")
    assert result.exit_code == code
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


class Terminal:
    """The command, as somebody types to it."""

    def __init__(self, process: subprocess.Popen[bytes], keys: int) -> None:
        self.process = process
        self._keys = keys
        self._shown = ""

    def type(self, text: str) -> None:
        """Type at the next prompt."""
        self.see("> ")
        os.write(self._keys, text.encode())

    def see(self, text: str) -> None:
        """Wait until it is shown after all that was seen before."""
        while text not in self._shown:
            more = os.read(self._keys, 4096).decode()
            assert more, self._shown
            self._shown += more
        self._shown = self._shown.partition(text)[2]


@contextmanager
def typing(url: str, folder: Path) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "cantata", "chat", "--server", url]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, start_new_session=True
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


async def test_a_typed_conversation(server: Server, tmp_path: Path) -> None:
    def hold() -> int:
        with typing(server.url, tmp_path) as terminal:
            terminal.see("Ctrl-D ends.")
            terminal.type("the first\n")
            terminal.see("the first\r\nthe first\r\n")
            terminal.type("/nonsense\n")
            terminal.see("/reset forgets")
            terminal.type("/image nowhere.png\n")
            terminal.see("nowhere.png: there is no such file")
            terminal.type("/save talk.md\n")
            terminal.see("1 turns in talk.md")
            terminal.type("/reset\n")
            terminal.see("A new conversation.")
            terminal.type("the second\n")
            terminal.see("the second\r\nthe second\r\n")
            terminal.type("\x04")
            return terminal.process.wait(WAIT_S)

    assert await asyncio.to_thread(hold) == 0
    saved = (tmp_path / "talk.md").read_text()
    assert saved == "## You\n\nthe first\n\n## Answer\n\nthe first\n"
    requests = server.service.omni.counts.requests
    assert [len(request.messages) for request in requests] == [1, 1]


async def test_ctrl_c_stops_the_answer_and_not_the_conversation(
    server: Server, tmp_path: Path
) -> None:
    thinker = server.service.omni
    thinker.behaviour.may_continue = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hold() -> int:
        with typing(server.url, tmp_path) as terminal:
            terminal.type("abcdef\n")
            terminal.see("abcdef\r\nabc")
            terminal.process.send_signal(signal.SIGINT)
            terminal.see("stopped")
            aborted = eventually(lambda: thinker.counts.aborted == 1)
            asyncio.run_coroutine_threadsafe(aborted, loop).result(WAIT_S)
            assert thinker.behaviour.may_continue is not None
            loop.call_soon_threadsafe(thinker.behaviour.may_continue.set)
            terminal.type("go on\n")
            terminal.see("go on\r\ngo on\r\n")
            terminal.type("\x04")
            return terminal.process.wait(WAIT_S)

    assert await asyncio.to_thread(hold) == 0
    first, second = thinker.counts.requests
    assert len(first.messages) == 1
    said = [part for message in second.messages for part in message.parts]
    assert [getattr(part, "text", None) for part in said] == ["abcdef", "abc", "go on"]
