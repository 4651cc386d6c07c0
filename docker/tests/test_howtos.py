"""docs/howto/compose.md and gpu.md: their files fit the server's, and what they name exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_group

from cantata.cli.app import app
from cantata.config import load_deployment
from cantata_models.qwen3_tts.plugin import PLUGIN
from documented import HOWTOS, read_block

ROOT = Path(__file__).parents[2]
COMPOSE = (ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8")
PAGE = HOWTOS / "compose.md"
OWN: dict[str, Any] = yaml.safe_load(read_block(PAGE, "compose.own.yaml"))["services"]["server"]


def test_its_own_file_keeps_the_command_and_adds_what_serve_knows() -> None:
    first = yaml.safe_load(COMPOSE)["services"]["server"]["command"]
    assert OWN["command"][: len(first)] == first
    known = {option for param in get_group(app).commands["serve"].params for option in param.opts}
    assert {word.split("=")[0] for word in OWN["command"][2:]} <= known


def test_its_models_are_where_they_are_mounted() -> None:
    (mount,) = (volume.split(":")[1] for volume in OWN["volumes"])
    folders = [word for word in OWN["command"] if word.startswith("--model=/")]
    assert folders
    assert all(folder.startswith(f"--model={mount}/") for folder in folders)


def test_it_lists_the_variables_of_the_compose_file() -> None:
    listed = re.findall(r"^\| `([A-Z_]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(listed) == set(re.findall(r"\$\{(\w+)", COMPOSE)) | {"CANTATA_API_KEY"}
    assert "environment: CANTATA_API_KEY" in COMPOSE


@pytest.mark.parametrize("page", ["compose.md", "gpu.md"])
def test_its_files_exist(page: str) -> None:
    text = (HOWTOS / page).read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:docker|requirements|models|benchmarks)/[\w./]+\.\w+", text))
    missing = {name for name in named if not (ROOT / name).exists()}
    assert missing == {"docker/server.env"}, "it makes that one alone"


def test_the_deployment_has_every_stage_on_the_gpu(tmp_path: Path) -> None:
    (tmp_path / "models").symlink_to(ROOT / "models")
    command = read_block(HOWTOS / "gpu.md", "deployment")
    subprocess.run(["bash", "-euc", command], cwd=tmp_path, check=True)
    deployment = load_deployment(tmp_path / "gpu.yaml", PLUGIN.pipeline)
    assert {stage.device for stage in deployment.stages.values()} == {"cuda"}
