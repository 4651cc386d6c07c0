"""`cantata draw`: through a server, files, messages and exit codes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from fake_picture import DRAWING, EDITING, expected_picture
from live_server import Server
from PIL import Image
from typer.testing import CliRunner, Result

from cantata.api.access.api_keys import ApiKeys
from cantata.api.settings import SecuritySettings, ServerSettings
from cantata.cli.app import app
from cantata.contract.data.errors import RequestFailed
from images_and_videos import image_file, quarters

KEY = "secret-0123456789"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["draw", "a red house", *arguments])


async def run_beside(server: Server, *arguments: str) -> Result:
    return await asyncio.to_thread(run, *arguments, "--server", server.url)


async def test_a_picture_from_a_server(server: Server, tmp_path: Path) -> None:
    out = tmp_path / "house.png"
    options = ("--size", "96x64", "--seed", "5", "--steps", "3", "--negative", "rain")
    result = await run_beside(server, "-o", str(out), *options, "--guidance", "3.5")
    assert result.exit_code == 0, result.output
    (request,) = server.service.painter.counts.requests
    assert (request.seed, request.steps, request.negative_prompt) == (5, 3, "rain")
    assert request.guidance == 3.5
    np.testing.assert_array_equal(np.asarray(Image.open(out)), expected_picture(request, 96, 64))
    assert "96x64" in result.stderr
    assert "seed 5" in result.stderr


@pytest.mark.parametrize(
    ("name", "kind"), [("a.jpg", "JPEG"), ("a.JPEG", "JPEG"), ("a.webp", "WEBP")]
)
async def test_formats_by_the_files_name(
    server: Server, tmp_path: Path, name: str, kind: str
) -> None:
    out = tmp_path / name
    result = await run_beside(server, "-o", str(out), "--model", "painter")
    assert result.exit_code == 0, result.output
    with Image.open(out) as image:
        assert (image.format, image.size) == (kind, DRAWING.default_size)


async def test_an_edit(server: Server, tmp_path: Path) -> None:
    files = [tmp_path / "1.png", tmp_path / "2.webp"]
    files[0].write_bytes(image_file(quarters()))
    files[1].write_bytes(image_file(quarters(30, 30), "WEBP", lossless=True))
    edits = [word for file in files for word in ("--edit", str(file))]
    out = tmp_path / "out.png"
    result = await run_beside(server, "-o", str(out), *edits, "--seed", "3")
    assert result.exit_code == 0, result.output
    (request,) = server.service.editor.counts.requests
    np.testing.assert_array_equal(request.references[0], quarters())
    np.testing.assert_array_equal(request.references[1], quarters(30, 30))
    expected = expected_picture(request, *EDITING.default_size)
    np.testing.assert_array_equal(np.asarray(Image.open(out)), expected)


async def test_what_a_server_rejects_is_one_line(server: Server, tmp_path: Path) -> None:
    out = tmp_path / "a.png"
    result = await run_beside(server, "-o", str(out), "--size", "100x100")
    assert result.exit_code == 1
    assert result.stderr.startswith("cantata: size is '100x100'; valid: 'auto', or WIDTHxHEIGHT")
    how = server.service.painter.behaviour
    how.fail_after, how.error = 2, RequestFailed("the stage gave up")
    result = await run_beside(server, "-o", str(out))
    assert (result.exit_code, result.stderr.strip()) == (1, "cantata: the stage gave up")
    assert not out.exists()


@pytest.mark.parametrize("settings", [ServerSettings(security=SecuritySettings(ApiKeys([KEY])))])
async def test_the_key_comes_from_the_environment(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(tmp_path / "a.png")
    assert "API key" in (await run_beside(server, "-o", out)).stderr
    monkeypatch.setenv("CANTATA_API_KEY", KEY)
    assert (await run_beside(server, "-o", out)).exit_code == 0


def test_what_is_wrong_is_said_before_anything_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"")
    (tmp_path / "b.png").mkdir()
    for arguments, code, says in (
        (("-o", str(tmp_path / "a.gif")), 2, "must end with one of .png, .jpg, .jpeg, .webp"),
        (("-o", str(tmp_path / "b.png")), 2, "is a folder"),
        (("-o", str(tmp_path / "no" / "a.png")), 1, "there is no folder"),
        (("--server", "http://127.0.0.1:1", "-o", str(tmp_path / "a.png")), 1, "127.0.0.1:1: "),
        (("--server", "there", "-o", str(tmp_path / "a.png")), 2, "http://127.0.0.1:8000"),
        (("--model", "solo", "-o", str(tmp_path / "a.png")), 1, "'solo' does not draw"),
        (("--model", "no-such", "-o", str(tmp_path / "a.png")), 1, "no-such"),
    ):
        result = run(*arguments)
        assert result.exit_code == code, result.output
        assert says in result.stderr
