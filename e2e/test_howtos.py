"""docs/howto: the commands of its pages, as a reader runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

from documented import HOWTOS, URL, fill_in, read_block

from .server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.level1]


READ = "Would you believe that the old clock still works, after all of these long years?"


def record(server: Server, text: str, file: Path) -> None:
    """A speaker reads the text."""
    answer = server.speech(input=text, voice="ewan", response_format="wav")
    file.write_bytes(answer.raise_for_status().content)


def run(page: str, labels: list[str], server: Server, folder: Path) -> str:
    """What the commands of these labels print: in one shell, until the first that fails."""
    code = "".join(read_block(HOWTOS / page, label) for label in labels)
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", code.replace(URL, server.url)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def seconds(file: Path) -> float:
    samples, rate = soundfile.read(str(file))  # a streamed header does not tell
    return float(len(samples) / rate)


@pytest.mark.thorough
def test_a_book(server: Server, tmp_path: Path) -> None:
    run("long-texts.md", ["text", "book"], server, tmp_path)
    assert "Nobody has ever asked." in (tmp_path / "the-sea.srt").read_text(encoding="utf-8")
    assert (tmp_path / "the-sea.m4b").stat().st_size > 10_000


def test_a_job_and_a_batch(server: Server, tmp_path: Path) -> None:
    printed = run("long-texts.md", ["text", "job", "batch"], server, tmp_path)
    assert "job.completed" in printed
    names = [one["name"] for one in json.loads((tmp_path / "done.json").read_bytes())["files"]]
    assert sorted(Path(name).suffix for name in names) == [".mp3", ".mp3", ".vtt", ".vtt"]
    sounds = [name for name in names if name.endswith(".mp3")]
    for name in (*sounds, "door.mp3", "lift.mp3"):
        assert seconds(tmp_path / name) > 0.5


def test_a_file_of_requests(server: Server, tmp_path: Path) -> None:
    run("long-texts.md", ["file"], server, tmp_path)
    for name in ("tea.mp3", "train.mp3"):
        assert seconds(tmp_path / name) > 0.5


def test_a_voice_and_a_lexicon(server: Server, tmp_path: Path) -> None:
    record(server, READ, tmp_path / "ada.wav")
    run("voices.md", ["upload", "lexicon"], server, tmp_path)
    voice = json.loads((tmp_path / "ada.json").read_bytes())["id"]
    assert voice in server.get("/v1/audio/voices").text
    assert seconds(tmp_path / "morning.wav") > 0.5
    assert seconds(tmp_path / "nguyen.mp3") > 0.5
    run("voices.md", ["delete"], server, tmp_path)
    assert voice not in server.get("/v1/audio/voices").text
    assert server.get("/v1/lexicons").json() == {"lexicons": []}


@pytest.mark.thorough
def test_a_recording_without_a_server(server: Server, tmp_path: Path) -> None:
    record(server, READ, tmp_path / "ada.wav")
    run("voices.md", ["once"], server, tmp_path)
    assert seconds(tmp_path / "once.wav") > 0.5


def test_the_request_to_a_container(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANTATA_API_KEY", "a-server-without-keys-takes-any")
    run("compose.md", ["check"], server, tmp_path)
    assert seconds(tmp_path / "morning.mp3") > 0.5


def test_an_assistant(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code = fill_in(read_block(HOWTOS / "mcp.md", "check.py"), {URL: server.url})
    exec(compile(code, "check.py", "exec"), {})
    assert "speak, list_voices" in capsys.readouterr().out
    plain = server.speech(input="Good morning.", voice="ben", response_format="mp3")
    assert Path("morning.mp3").read_bytes() == plain.content
    Path("morning.mp3").rename("talk.mp3")
    assert '"user_data"' in run("mcp.md", ["upload"], server, tmp_path)


def test_how_a_server_is(server: Server, tmp_path: Path) -> None:
    printed = run("monitoring.md", ["ask"], server, tmp_path)
    assert '"status"' in printed
    assert "cantata_requests_running" in printed
