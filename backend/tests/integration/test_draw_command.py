"""`cantata draw` without a server: it loads the model in stage processes, and ends them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from cantata.cli.app import app
from cantata.config.plugins import LocatedModel
from images_and_videos import image_file, quarters
from tiny_painter.plugin import PLUGIN, save_tiny_painter

pytestmark = pytest.mark.integration


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A plug-in that no package offers, as the command finds it."""
    save_tiny_painter(tmp_path)
    located = LocatedModel(PLUGIN, tmp_path)
    monkeypatch.setattr("cantata.pipeline.plan.locate", lambda model: located)
    before = set(psutil.Process().children())
    yield
    left = [p for p in psutil.Process().children() if p not in before and "denoiser" in p.name()]
    assert left == []


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["draw", *arguments, "--model", PLUGIN.name])


def test_a_picture_and_its_edit(checkpoint: None, tmp_path: Path) -> None:
    first, again, other = (tmp_path / name for name in ("1.png", "2.png", "3.png"))
    options = ("--seed", "4", "--size", "32x48", "--steps", "5")
    for out in (first, again):
        result = run("a house", "-o", str(out), *options)
        assert result.exit_code == 0, result.output
        assert "32x48" in result.stderr
    assert first.read_bytes() == again.read_bytes()
    given = tmp_path / "given.png"
    given.write_bytes(image_file(quarters()))
    result = run(
        "a house",
        "-o",
        str(other),
        "--seed",
        "4",
        "--size",
        "32x48",
        "--steps",
        "5",
        "--edit",
        str(given),
    )
    assert result.exit_code == 0, result.output
    drawn, edited = (np.asarray(Image.open(path)) for path in (first, other))
    assert drawn.shape == edited.shape == (48, 32, 3)
    assert (drawn != edited).any()


def test_what_cannot_be_served_is_one_line(checkpoint: None, tmp_path: Path) -> None:
    out = tmp_path / "a.png"
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")
    for arguments, says in (
        (("a", "--size", "20x20"), "size is '20x20'; valid: 'auto', or WIDTHxHEIGHT"),
        (("a", "--steps", "500"), "num_inference_steps is 500; valid: 1 to 200"),
        (("",), "prompt: Value should have at least 1"),
        (("a", *["--edit", str(broken)] * 3), "takes 1 to 2"),
        (("a", "--edit", str(broken)), "is not a readable picture"),
        (("CRASH",), "the picture could not be drawn"),
    ):
        result = run(*arguments, "-o", str(out))
        assert result.exit_code == 1, result.output
        assert says in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
    assert not out.exists()
