"""`cantata transcribe`: the model that ships, a server, files, messages, exit codes."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from live_server import Server
from typer.testing import CliRunner, Result

from cantata.cli.app import app

RECORDING = Path(__file__).parents[4] / "docs" / "voice" / "clara.mp3"
SAID = "home along the river after school"


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["transcribe", *arguments], input=stdin)


async def run_beside(server: Server, *arguments: str) -> Result:
    return await asyncio.to_thread(run, *arguments, "--server", server.url)


def test_a_file_with_the_model_that_ships() -> None:
    result = run(str(RECORDING))
    assert result.exit_code == 0, result.output
    assert SAID in result.stdout


def test_standard_input_into_subtitles(tmp_path: Path) -> None:
    out = tmp_path / "speech.srt"
    result = run("-", "-o", str(out), stdin=RECORDING.read_bytes())
    assert result.exit_code == 0, result.output
    number, times, text = out.read_text(encoding="utf-8").split("\n")[:3]
    assert (number, times[:3], times[13:16]) == ("1", "00:", "-->")
    assert SAID in text


async def test_a_folder_through_a_server(server: Server, tmp_path: Path) -> None:
    for name in ("a.mp3", "b.mp3"):
        shutil.copy(RECORDING, tmp_path / name)
    (tmp_path / "notes.md").write_text("no recording", encoding="utf-8")
    result = await run_beside(
        server, str(tmp_path), "--format", "json", "--language", "de", "--prompt", "Names."
    )
    assert result.exit_code == 0, result.output
    first = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert first["text"].startswith("word0 word1")
    assert first["words"][0]["word"] == "word0"
    assert first["segments"][0]["id"] == 0
    assert first["language"] == "de"
    assert (tmp_path / "b.json").exists()
    assert not (tmp_path / "notes.json").exists()
    requests = server.service.ears.counts.requests
    assert [(one.language, one.prompt) for one in requests] == [("de", "Names.")] * 2


async def test_translation_through_a_server(server: Server) -> None:
    result = await run_beside(server, str(RECORDING), "--translate", "--model", "ears")
    assert result.exit_code == 0, result.output
    assert server.service.ears.counts.requests[0].translate


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nowhere.wav",), 2, "there is no such file"),
        ((str(RECORDING), "-o", "nowhere/a.txt"), 1, "there is no folder"),
        ((str(RECORDING), "-o", "a.pdf"), 2, "must end with one of .txt, .srt, .vtt, .json"),
        ((str(RECORDING.parents[1] / "protocol.md"),), 1, "is not a readable sound file"),
        ((str(RECORDING.parents[1]),), 2, "the folder has no recordings"),
        ((str(RECORDING), str(RECORDING)), 2, "several recordings would be written there"),
        ((str(RECORDING), "--language", "xx"), 1, "valid: en"),
        ((str(RECORDING), "--translate"), 1, "translates nothing"),
        ((str(RECORDING), "--model", "solo"), 1, "does not transcribe"),
        ((str(RECORDING), "--server", "http://127.0.0.1:9"), 1, "does a server run there?"),
        ((str(RECORDING), "--server", "there:9"), 2, "such as http://127.0.0.1:8000"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: tuple[str, ...], code: int, said: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == code
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
