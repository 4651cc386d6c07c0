"""`cantata say` and its neighbours as a shell runs them: the real command in a process of its own,
against a server."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import replace
from pathlib import Path

import av
import httpx
import numpy as np
import pytest
import soundfile
from fake_service import FakeService, expected_pcm
from live_server import Server
from typer.testing import CliRunner, Result

from cantata.audio.pcm import to_s16
from cantata.audio.sinks import StreamSink
from cantata.cli.app import app
from cantata.cli.progress import SpokenProgress
from cantata.media.provenance import find_provenance

COMMAND = (sys.executable, "-m", "cantata")
WAIT_S = 60


async def start(*arguments: str, stdin: int = PIPE, env: dict[str, str] | None = None) -> Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        stdin=stdin,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, **(env or {})},
    )


async def run(
    *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None
) -> tuple[int, bytes, str]:
    """Exit code, standard output, standard error."""
    process = await start(*arguments, env=env)
    out, err = await asyncio.wait_for(process.communicate(stdin), WAIT_S)
    assert process.returncode is not None
    return process.returncode, out, err.decode()


async def invoke(*arguments: str) -> Result:
    """The command in this process."""
    return await asyncio.to_thread(CliRunner().invoke, app, list(arguments))


def samples_of(text: str, service: FakeService) -> np.ndarray:
    return to_s16(expected_pcm(text, service.solo.behaviour))


async def test_words_need_no_quotes_and_raw_is_what_players_take(server: Server) -> None:
    code, out, err = await run("say", "hi", "there", "--raw", "--server", server.url)
    assert code == 0, err
    samples = np.frombuffer(out, "<i2").reshape(-1, 1)
    np.testing.assert_array_equal(samples, samples_of("hi there", server.service))
    assert "24000 Hz, 1 channel" in err  # what a player must be told


async def test_standard_input_and_output_without_a_word_about_them(server: Server) -> None:
    arguments = ("say", "-o", "-", "--quiet", "--server", server.url)
    code, out, err = await run(*arguments, stdin="\ufefffrom a pipe".encode())
    assert (code, err) == (0, "")
    assert find_provenance(out).synthetic is True
    with av.open(io.BytesIO(out), "r") as file:
        sound = np.concatenate([frame.to_ndarray().T for frame in file.decode(audio=0)])
    np.testing.assert_array_equal(sound, samples_of("from a pipe", server.service))


@pytest.mark.parametrize("form", ["mp3", "opus", "aac", "flac"])
def test_formats_on_a_stream(form: str) -> None:
    stream = io.BytesIO()
    with StreamSink(stream, form, 24_000, 1) as sink:
        sink.write(np.zeros((2400, 1), np.int16))
    with av.open(io.BytesIO(stream.getvalue())) as sound:
        assert sound.streams[0].codec_context.name.startswith(form)


async def test_a_terminal_gets_a_hint_instead_of_a_wait() -> None:
    ours, theirs = pty.openpty()
    try:
        process = await start("say", stdin=theirs)
        _, err = await asyncio.wait_for(process.communicate(), WAIT_S)
    finally:
        os.close(ours)
        os.close(theirs)
    assert process.returncode == 2
    assert b"give a text to speak" in err


async def test_a_text_file_is_read_and_has_subtitles_beside_its_sound(
    server: Server, tmp_path: Path
) -> None:
    book, out = tmp_path / "book.md", tmp_path / "book.opus"
    book.write_text("hello there", encoding="utf-8")
    code, _, err = await run("say", str(book), "-o", str(out), "--srt", "--server", server.url)
    assert code == 0, err
    assert out.read_bytes()[:4] == b"OggS"
    assert "hello there" in (tmp_path / "book.srt").read_text(encoding="utf-8")
    assert server.service.solo.counts.requests[-1].text == "hello there"
    assert sorted(os.listdir(tmp_path)) == ["book.md", "book.opus", "book.srt"]


async def test_markup_is_neither_spoken_nor_in_the_subtitles(
    server: Server, tmp_path: Path
) -> None:
    book, out = tmp_path / "book.md", tmp_path / "book.wav"
    book.write_text(
        "# A *book*\n\n- one [link](http://x.y/z) here\n- two\n\n```\nprint(1)\n```\n"
        "| a | b |\n|---|---|\n| this &amp; that | `d` |\n",
        encoding="utf-8",
    )
    code, _, err = await run("say", str(book), "-o", str(out), "--srt", "--server", server.url)
    assert code == 0, err
    spoken = "A book\n\none link here\n\ntwo\n\na, b\n\nthis & that, d"
    assert server.service.solo.counts.requests[-1].text == spoken
    lines = (tmp_path / "book.srt").read_text(encoding="utf-8").splitlines()
    cues = [line for line in lines if line and not line.isdigit() and "-->" not in line]
    assert " ".join(cues) == " ".join(spoken.split())


async def test_a_book_is_not_spoken_by_its_name(server: Server, tmp_path: Path) -> None:
    book, out = tmp_path / "novel.epub", str(tmp_path / "out.wav")
    told = await invoke("say", str(book), "-o", out, "--server", server.url)
    assert (told.exit_code, "there is no file" in told.stderr) == (2, True)
    book.write_bytes(b"PK")
    told = await invoke("say", str(book), "-o", out, "--server", server.url)
    assert (told.exit_code, '"cantata book" reads .epub files' in told.stderr) == (2, True)
    assert server.service.solo.counts.requests == []


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16"])
async def test_unicode_texts_are_read_by_their_mark(
    server: Server, tmp_path: Path, coding: str
) -> None:
    text, out = tmp_path / "text.txt", str(tmp_path / "out.wav")
    text.write_text("caf\u00e9", encoding=coding)
    said = await invoke("say", str(text), "-o", out, "--server", server.url)
    assert said.exit_code == 0, said.stderr
    assert server.service.solo.counts.requests[-1].text == "caf\u00e9"


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize(
    "arguments",
    [
        ("voices",),
        ("models", "--json"),
        ("say", "hi", "-o", "-"),
        ("say", "hi", "--raw"),
        ("--version",),
        ("--help",),
    ],
)
async def test_a_full_disk_behind_standard_output_is_told_in_one_line(
    server: Server, arguments: tuple[str, ...]
) -> None:
    to_server = () if arguments[0].startswith("-") else ("--server", server.url)
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        process = await asyncio.create_subprocess_exec(
            *COMMAND, *arguments, *to_server, stdin=DEVNULL, stdout=full, stderr=PIPE
        )
        _, err = await asyncio.wait_for(process.communicate(), WAIT_S)
    finally:
        os.close(full)
    assert process.returncode == 1
    assert len(err.splitlines()) == 1, err
    assert err.startswith(b"cantata: standard output: ")
    assert b"No space left on device" in err


@pytest.mark.parametrize("name", ["out.wav", "out.flac", "out.mp3"])
async def test_a_file_that_finds_no_room_is_told_and_not_left(
    server: Server, tmp_path: Path, name: str
) -> None:
    how = server.service.solo.behaviour
    how.chunks = 400
    out = tmp_path / name
    out.write_bytes(b"earlier")
    words = " ".join((*COMMAND, "say", "long", "--server", server.url, "-o", str(out)))
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", f"ulimit -f 4; exec {words}"), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    _, err = await asyncio.wait_for(process.communicate(), WAIT_S)
    assert process.returncode == 1
    assert err.decode() == f"cantata: {out}: cannot be written (File too large)\n"
    assert os.listdir(tmp_path) == [name]
    assert out.read_bytes() == b"earlier"


async def test_places_that_take_no_file_are_named(server: Server, tmp_path: Path) -> None:
    times = tmp_path / "times.srt"
    times.symlink_to("/dev/full")
    out = str(tmp_path / "out.wav")
    for arguments, place in (
        (("-o", "/proc/x.wav"), "/proc/x.wav"),
        (("-o", "/proc/x.mp3"), "/proc/x.mp3"),
        (("-o", "/dev/full", "--format", "wav"), "/dev/full"),
        (("-o", out, "--timestamps", str(times)), str(times)),
    ):
        said = await invoke("say", "hi", "--server", server.url, *arguments)
        assert said.exit_code == 1
        assert said.stderr.startswith(f"cantata: {place}: cannot be written (")


@pytest.mark.parametrize(
    "arguments", [("say", "hi", "--raw"), ("say", "hi", "-o", "-"), ("draw", "a", "-o", "-")]
)
async def test_no_bytes_are_written_to_a_terminal(arguments: tuple[str, ...]) -> None:
    ours, theirs = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *COMMAND, *arguments, stdin=DEVNULL, stdout=theirs, stderr=PIPE
        )
        _, err = await asyncio.wait_for(process.communicate(), WAIT_S)
    finally:
        os.close(ours)
        os.close(theirs)
    assert process.returncode == 2
    assert err == b"cantata: standard output is a terminal; redirect or pipe it\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_leaves_the_file_as_it_was(
    server: Server, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "out.wav"
    out.write_bytes(b"earlier")
    how = server.service.solo.behaviour
    how.chunks, how.interval_s = 100_000, 0.01
    process = await start("say", "endless", "-o", str(out), "--server", server.url, stdin=DEVNULL)
    async with asyncio.timeout(WAIT_S):
        while len(os.listdir(tmp_path)) < 2:  # it writes beside the file
            assert process.returncode is None
            await asyncio.sleep(0.01)
        process.send_signal(number)
        await process.communicate()
    assert process.returncode == 128 + number
    assert os.listdir(tmp_path) == ["out.wav"]
    assert out.read_bytes() == b"earlier"


async def test_directions_and_recordings_reach_the_model(server: Server, tmp_path: Path) -> None:
    recording = tmp_path / "me.wav"
    soundfile.write(recording, 0.3 * np.sin(np.arange(48_000) / 20), 24_000)
    solo = server.service.solo
    solo.capabilities = replace(solo.capabilities, references=True)
    told = ("--instructions", "calmly", "--ref-audio", str(recording), "--ref-text", "hum")
    to_file = ("-o", str(tmp_path / "out.wav"), "--server", server.url)
    said = await invoke("say", "hi", *told, *to_file)
    assert said.exit_code == 0, said.stderr
    (request,) = solo.counts.requests
    assert request.instructions == "calmly"
    assert request.reference is not None
    assert (request.reference.transcript, len(request.reference.samples)) == ("hum", 48_000)
    duo = ("--model", "duo")
    ignored = await invoke("say", "hi", "--instructions", "calmly", *duo, *to_file)
    assert ignored.exit_code == 0
    assert "--instructions has no effect: model 'duo'" in ignored.stderr
    rejected = await invoke("say", "hi", "--ref-audio", str(recording), *duo, *to_file)
    assert rejected.exit_code == 1
    assert "cannot speak like a recording" in rejected.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["hi", "--srt"], "--srt needs a sound file"),
        (["hi", "--format", "mp3"], "--format needs a file"),
        (["hi", "--raw", "-o", "a.wav"], "--raw is -o - --format pcm"),
        (["hi", "--ref-text", "hello"], "--ref-audio"),
        (["hi", "-f", "-"], "either a text"),
    ],
)
def test_options_that_exclude_each_other(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(app, ["say", *arguments])
    assert result.exit_code == 2
    assert says in result.stderr


async def test_voices_and_models_of_a_server(server: Server, http: httpx.AsyncClient) -> None:
    for command, path, key in (
        ("voices", "/v1/audio/voices", "voices"),
        ("models", "/v1/models", "data"),
    ):
        listed = (await http.get(path)).json()[key]
        told = await invoke(command, "--server", server.url, "--json")
        assert json.loads(told.stdout) == listed
        shown = await invoke(command, "--server", server.url)
        assert all(one["id"] in shown.stdout for one in listed)
    unknown = await invoke("voices", "--server", server.url, "--model", "nope")
    assert unknown.exit_code == 1
    assert "nope" in unknown.stderr
    nobody = await invoke("voices", "--server", "http://127.0.0.1:1")
    assert nobody.exit_code == 1
    assert "http://127.0.0.1:1: cannot be reached" in nobody.stderr
    assert "does a server run there?" in nobody.stderr
    wrong = await invoke("models", "--server", "there")
    assert wrong.exit_code == 2
    assert "--server there: write an address such as http://127.0.0.1:8000" in wrong.stderr


async def test_voices_and_models_that_are_installed() -> None:
    from cantata.config.plugins import list_embedded_models, load_plugins

    listed = {one["id"]: one for one in json.loads((await invoke("models", "--json")).stdout)}
    assert listed.keys() == load_plugins().keys()
    ready = {name for name, one in listed.items() if one["needs"] is None}
    # Another one is ready where a package with its weights is installed.
    assert set(list_embedded_models()) <= ready < listed.keys()
    voices = json.loads((await invoke("voices", "--json")).stdout)
    assert {"id", "name", "description", "gender", "aliases", "kind", "model"} == voices[0].keys()
    assert {one["model"] for one in voices} == {
        name for name in list_embedded_models() if load_plugins()[name].load_builder
    }


async def test_version_help_and_completion() -> None:
    assert (await invoke("--version")).stdout.startswith("cantata ")
    assert "Examples:" in (await invoke("say", "-h")).stdout
    words = {"_CANTATA_COMPLETE": "complete_bash", "COMP_WORDS": "cantata vo", "COMP_CWORD": "1"}
    _, out, _ = await run(env=words)
    assert out.split() == [b"voices"]


async def test_a_bar_over_the_text_with_the_time_that_is_left(server: Server) -> None:
    """On a terminal; the words' times tell how far the sound is."""
    how = server.service.solo.behaviour
    how.interval_s = 0.02
    ours, theirs = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *("say", "one two three four five six", "--raw", "--server", server.url),
            stdout=DEVNULL,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
        await asyncio.wait_for(process.wait(), WAIT_S)
        shown = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert process.returncode == 0, shown
    assert "left" in shown
    assert "TTFP" in shown


def test_progress_follows_the_words() -> None:
    from rich.console import Console

    from cantata.contract.service import SpokenWord

    words = [SpokenWord(0, 5, 0.0, 0.4), SpokenWord(6, 11, 0.5, 0.9)]
    with SpokenProgress("hello there", words, Console(file=io.StringIO())) as progress:
        (task,) = progress._bar.tasks
        told = []
        for seconds in (0.2, 0.5):
            progress.advance(seconds)
            told.append((task.completed, task.total))
    assert told == [(5, 11), (11, 11)]
