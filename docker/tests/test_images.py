"""What the Dockerfiles specify, read from them: nothing is built or started."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from typer.main import get_group

from cantata.cli.app import app
from dockerfiles import DOCKERFILES, ROOT, Step, last, steps

SETUP = "/opt/setup/"
"""Where the last stage keeps the repository's scripts, by their paths in it."""


@pytest.fixture(params=DOCKERFILES, ids=lambda path: path.suffix[1:])
def image(request: pytest.FixtureRequest) -> list[Step]:
    """Every image's instructions."""
    return list(steps(request.param))


def options_of_serve() -> set[str]:
    """Every option that `cantata serve` knows."""
    serve = get_group(app).commands["serve"]
    return {option for param in serve.params for option in param.opts}


def test_there_is_an_image_for_each_device() -> None:
    assert [path.name for path in DOCKERFILES] == ["Dockerfile.cpu", "Dockerfile.cuda"]


def test_the_server_is_not_root(image: list[Step]) -> None:
    user, group = map(int, last(image, "USER").split(":"))
    assert user > 0
    assert group > 0
    assert f"add-user.sh cantata {user}" in last(image, "RUN")


def test_nothing_is_fetched_by_an_address(image: list[Step]) -> None:
    assert not [step for step in image if step.name == "ADD"]
    assert not [step for step in image if "://" in step.rest and step.name != "HEALTHCHECK"]


def test_run_steps_are_scripts_of_the_repository_that_were_copied(image: list[Step]) -> None:
    copied: dict[int, set[str]] = {}
    for step in image:
        copied.setdefault(step.stage, set()).update(step.sources)
        if step.name == "RUN":
            for command in step.rest.split("&&"):
                script = shlex.split(command)[0].removeprefix(SETUP)
                assert os.access(ROOT / script, os.X_OK), script
                assert script in copied[step.stage]


def test_scripts_that_scripts_call_are_copied_too(image: list[Step]) -> None:
    for stage in {step.stage for step in image}:
        copied = {path for step in image if step.stage == stage for path in step.sources}
        for script in (path for path in copied if path.endswith(".sh")):
            called = re.findall(r"scripts/[a-z-]+\.sh", (ROOT / script).read_text())
            if script.endswith("install-dependencies.sh") and "requirements/cuda.txt" in copied:
                called = []  # its own torch comes with the pins
            assert copied.issuperset(called), f"{script} calls {called}"


def test_all_that_is_copied_exists_and_is_not_ignored(image: list[Step]) -> None:
    wanted = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if "!" in line]
    for source in (ROOT / path for step in image for path in step.sources):
        assert source.exists(), source
        kept = [path for pattern in wanted for path in ROOT.glob(pattern)]
        assert any(source in (path, *path.parents) or path in source.parents for path in kept)


def test_every_package_of_the_wheel_is_copied(image: list[Step]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = {path for step in image for path in step.sources}
    assert {Path(package).parts[0] for package in wheel["packages"]} <= copied
    assert set(wheel["force-include"]) <= copied
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{package}" for package in wheel["packages"]} <= set(ignored)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_pins_of_an_image_meet_every_extra_that_it_has(device: str) -> None:
    lock = runpy.run_path(str(ROOT / "requirements" / "lock.py"))
    pins = dict(
        re.split("={2,3}", line)
        for line in (ROOT / "requirements" / f"{device}.txt").read_text().splitlines()
        if not line.startswith("#")
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [device if name == "cpu" else name for name in lock["RUNTIME_EXTRAS"]]
    wanted = [Requirement(line) for e in extras for line in project["optional-dependencies"][e]]
    assert {one.name for one in wanted} <= set(pins)
    assert [str(one) for one in wanted if pins[one.name] not in one.specifier] == []


def test_the_health_check_runs_a_file_that_is_there(image: list[Step]) -> None:
    command = json.loads(last(image, "HEALTHCHECK").partition("CMD")[2])
    script = command[1].removeprefix(SETUP)
    copied = {path for step in image if step.stage == image[-1].stage for path in step.sources}
    assert script in copied
    assert command[2] == f"http://127.0.0.1:{last(image, 'EXPOSE')}/ready"


def test_the_command_is_one_that_cantata_knows(image: list[Step]) -> None:
    words = json.loads(last(image, "CMD"))
    assert words[:2] == ["cantata", "serve"]
    assert {word for word in words if word.startswith("--")} <= options_of_serve()
    assert "--no-auth" not in words
    for option in ("--voices-dir", "--jobs-dir"):
        kept = Path(words[words.index(option) + 1])
        assert Path(last(image, "VOLUME")) in kept.parents


def test_the_pins_are_for_the_device() -> None:
    pins = {name: (ROOT / f"requirements/{name}.txt").read_text() for name in ("cpu", "cuda")}
    assert not re.search("^(nvidia|cuda|triton)", pins["cpu"], re.MULTILINE)
    version = re.search(r"torch==([\d.]+)", (ROOT / "pyproject.toml").read_text())
    assert version
    assert f"\ntorch==={version[1]}\n" in pins["cuda"], "which a CPU build is not"
    assert f":-torch=={version[1]}+cpu}}" in (ROOT / "scripts/install-torch.sh").read_text()
    assert re.search(r"^vllm==", pins["cuda"], re.MULTILINE)
