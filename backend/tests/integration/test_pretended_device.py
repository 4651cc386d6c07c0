"""Every stage of every model on a device that only pretends to be a GPU: nothing is left behind on
the CPU, and no step makes the host wait."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cantata.config.plugins import load_plugins
from cantata.contract.model.pipeline import StageKind
from cantata.contract.model.plugin import ModelPlugin
from pretended_device import device, in_copied_process, pretended

PLUGINS = {
    name: plugin
    for name, plugin in sorted(load_plugins().items())
    if plugin.embedded_checkpoint or plugin.write_random_checkpoint
}

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


def _in_torch(plugin: ModelPlugin) -> bool:
    return all(stage.kind is not StageKind.RECOGNITION for stage in plugin.pipeline.stages)


def _engines(plugin: ModelPlugin) -> list[str]:
    """vLLM's, and the one without it if the model has such a talker."""
    graphs = any(stage.plain for stage in plugin.pipeline.stages)
    return ["", ":graphs"] if graphs else [""]


NAMES = [
    f"{name}{engine}"
    for name, plugin in PLUGINS.items()
    if _in_torch(plugin)
    for engine in _engines(plugin)
]
TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def failures(request: pytest.FixtureRequest) -> dict[str, str | None]:
    """Why each model failed of those that are tested, checked in one process of their own."""
    here = (item for item in request.session.items if item.path == request.path)
    calls = (getattr(item, "callspec", None) for item in here)
    names = [call.params["name"] for call in calls if call is not None]
    paths = [str(TESTS), *sys.path]
    checked = subprocess.run(
        [sys.executable, "-m", "on_device", *names],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    answer: dict[str, str | None] = json.loads(checked.stdout.splitlines()[-1])
    return answer


@pytest.mark.thorough(every=4)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_wholly_on_its_device_and_its_steps_do_not_wait(
    failures: dict[str, str | None], name: str
) -> None:
    failure = failures[name]
    assert failure is None, failure


@in_copied_process
def test_tensors_of_both_devices_cannot_be_added() -> None:
    with pretended():
        there, here = torch.zeros(2, device=device()), torch.zeros(2)
        with pytest.raises(RuntimeError, match=r"CPU tensors \[2\] beside those of the device"):
            there + here


WAITS: tuple[Callable[[torch.Tensor], object], ...] = (
    torch.Tensor.item,
    torch.Tensor.cpu,
    torch.Tensor.tolist,
    torch.Tensor.nonzero,
    lambda x: x[x > 0],
    lambda x: x.new_tensor([1.0]),
    lambda x: [0] * int(x.long()),
)


@in_copied_process
def test_what_waits_is_recorded_with_its_place() -> None:
    for wait in WAITS:
        with pretended() as moves:
            moves.clear()
            wait(torch.ones((), device=device()))
        (move,) = (move for move in moves if move.waits)
        assert any(place.startswith("test_pretended_device.py:") for place in move.places)


@in_copied_process
def test_a_copy_that_is_queued_does_not_wait() -> None:
    with pretended() as moves:
        there = torch.ones(3).to(device(), non_blocking=True)
        assert not [move for move in moves if move.waits]
        assert there.cpu().tolist() == [1.0] * 3
