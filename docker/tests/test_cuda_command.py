"""The CUDA image's own command, with its deployment, on a device that only pretends to be a GPU."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import httpx
import numpy as np
import pytest

from cantata.config import load_deployment
from cantata.config.plugins import load_plugins
from cantata_bench.server import running_server
from dockerfiles import ROOT, last, steps

TESTS = ROOT / "backend" / "tests"
IMAGE = list(steps(ROOT / "docker" / "Dockerfile.cuda"))
COMMAND: list[str] = json.loads(last(IMAGE, "CMD"))
MODEL = COMMAND[COMMAND.index("--model") + 1]
KEY = "a-key-of-this-test"
DEPLOYMENT = "opt/cantata/deploy.yaml"
AUDIBLE = 1_000
"""A sample of 16 bits that only speech reaches."""

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def volume(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what the image has under `/opt` and `/var/lib`, filled by its last script."""
    folder = tmp_path_factory.mktemp("image")
    pip = folder / "opt" / "cantata" / "bin" / "pip"
    pip.parent.mkdir(parents=True)
    pip.write_text("#!/bin/sh\n")  # Cantata is installed
    pip.chmod(0o755)
    runs = [step.rest for step in IMAGE if step.name == "RUN"]
    (script,) = (command for command in runs if "install-cantata.sh" in command)
    subprocess.run([move(word, folder) for word in shlex.split(script)], cwd=ROOT, check=True)
    return folder


def move(word: str, folder: Path) -> str:
    """A word of a command, with its path in the image as one in the folder."""
    return f"{folder}{word}" if word.startswith(("/opt/", "/var/lib/")) else word


def test_all_stages_of_its_model_are_on_the_gpu(volume: Path) -> None:
    deployed = load_deployment(volume / DEPLOYMENT, load_plugins()[MODEL].pipeline)
    assert {stage.device for stage in deployed.stages.values()} == {"cuda"}


@pytest.mark.thorough
def test_it_speaks_on_a_pretended_device(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stage is warmed up before the server is ready; tensors of the CPU beside those of the
    device end it."""
    paths = [str(TESTS / "pretended_gpu"), str(TESTS), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("CANTATA_API_KEYS", KEY)
    deployed = (volume / DEPLOYMENT).read_text(encoding="utf-8")
    # A server warms up with as many requests as it has slots, and a CPU pretends slowly.
    few, count = re.subn(r"slots: \d+", "slots: 4", deployed)
    assert count == len(load_plugins()[MODEL].pipeline.stages)
    (volume / DEPLOYMENT).write_text(few, encoding="utf-8")
    log = volume / "server.log"
    options = [move(word, volume) for word in COMMAND[2:]]
    asked = {"model": MODEL, "input": "Yes.", "response_format": "pcm"}
    with running_server(log, options=options) as server:
        request = httpx.Request(
            "POST",
            f"{server.url}/v1/audio/speech",
            json=asked,
            headers={"Authorization": f"Bearer {KEY}"},
        )
        with httpx.Client(timeout=120) as client:
            answer = client.send(request, stream=True)
            assert answer.status_code == httpx.codes.OK
            packets = list(answer.iter_raw())
    assert len(packets) > 1, "its first packet leaves while the next one is made"
    samples = np.frombuffer(b"".join(packets), "<i2")
    assert np.abs(samples).max() > AUDIBLE
    said = log.read_text(encoding="utf-8")
    for stage in load_plugins()[MODEL].pipeline.stages:
        assert f"stage {stage.name!r} is on a pretended GPU" in said
