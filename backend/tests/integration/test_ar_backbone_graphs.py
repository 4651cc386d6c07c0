"""A backbone's graphs, as far as they can be shown without a GPU: vLLM takes the configuration, and
its own capture replays what a talker computes."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cantata.stages.common.needs import GRAPH_BYTES
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.driving import CONVERSATIONS, varied_payloads

pytestmark = [
    pytest.mark.integration,
    pytest.mark.thorough,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton not installed"),
]

TESTS = Path(__file__).parents[1]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    save_tiny_checkpoint(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `pretended_card` says, asked once: to import vLLM takes CPU seconds."""
    folder = tmp_path_factory.mktemp("configured")
    save_tiny_checkpoint(folder)
    made: dict[str, Any] = json.loads(run_module("pretended_card", folder).splitlines()[-1])
    return made


def run_module(name: str, *arguments: Path, **environment: str) -> str:
    """In a process of its own: vLLM decides once for each process which device there is."""
    ended = subprocess.run(
        [sys.executable, "-m", name, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(TESTS), "TRITON_INTERPRET": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_vllm_takes_the_configuration_for_a_gpu(configured: dict[str, Any]) -> None:
    for graphs in ("True", "False"):
        settings = configured[graphs]
        assert settings["sizes"] == settings["asked"]
        assert settings["graph_bytes"] == GRAPH_BYTES * len(settings["sizes"])
        assert settings["compiled"] == "NONE"
        # Both warm vLLM's kernels up before the first request.
        assert (settings["eager"], settings["warms_up"]) == (False, True)
        assert settings["compares_products"] is False
    assert len(configured["True"]["sizes"]) > 10
    assert configured["True"]["modes"] == {"ALWAYS": "FULL", "UNIFORM_BATCH": "FULL_DECODE_ONLY"}
    assert configured["False"]["sizes"] == []
    assert set(configured["False"]["modes"].values()) == {"NONE"}


def test_the_first_runner_is_refused_on_a_gpu(configured: dict[str, Any]) -> None:
    assert "device 'cuda': vLLM chose its first model runner" in configured["refused"]


def test_replayed_steps_equal_called_ones(checkpoint: Path) -> None:
    asked = {
        name: replace(payload, max_frames=5, min_frames=3)
        for name, payload in varied_payloads(4).items()
    }
    requests = checkpoint / "requests"
    requests.write_bytes(pickle.dumps((asked, CONVERSATIONS)))
    module = "tiny_talker.recorded_backbone_check"
    run_module(module, checkpoint, requests, VLLM_USE_V2_MODEL_RUNNER="1")
