"""`cantata chat` with a text model that it serves itself."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from cantata.cli.app import app
from cantata_models.text_model.random_checkpoint import write_checkpoint

pytestmark = pytest.mark.integration


@pytest.mark.thorough
def test_the_model_is_served_for_the_time_of_the_command(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, "llama")
    options = ["--max-tokens", "8", "--seed", "1", "--temperature", "1", "--model", str(folder)]
    before = {child.pid for child in psutil.Process().children()}
    result = CliRunner().invoke(app, ["chat", "Hello.", *options])
    assert result.exit_code == 0, result.output
    assert result.stdout.strip()
    assert {child.pid for child in psutil.Process().children()} <= before
