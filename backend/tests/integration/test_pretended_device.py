"""Every stage of every model on a device that only pretends to be a GPU: nothing is left behind on
the CPU, and no step makes the host wait."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cantata.config.plugins import LocatedModel, installed_plugins
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.pipeline import StageKind
from cantata.contract.model.plugin import ModelPlugin
from on_device.check import check_on_device
from pretended_device import device, pretended

PLUGINS = {
    name: plugin
    for name, plugin in sorted(installed_plugins().items())
    if plugin.embedded_checkpoint or plugin.write_random_checkpoint
}
ON_THE_CPU_ALONE = "runs on the CPU"
"""In the error of a model that has no network in torch."""

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


def _in_torch(plugin: ModelPlugin) -> bool:
    return all(stage.kind is not StageKind.RECOGNITION for stage in plugin.pipeline.stages)


@pytest.mark.parametrize("name", [name for name, plugin in PLUGINS.items() if _in_torch(plugin)])
def test_a_model_is_wholly_on_its_device_and_its_steps_do_not_wait(
    name: str, tmp_path: Path
) -> None:
    plugin = PLUGINS[name]
    checkpoint = plugin.embedded_checkpoint or tmp_path
    if plugin.embedded_checkpoint is None:
        assert plugin.write_random_checkpoint is not None
        plugin.write_random_checkpoint(tmp_path)
    try:
        check_on_device(LocatedModel(plugin, checkpoint))
    except ConfigError as error:
        if ON_THE_CPU_ALONE not in str(error):
            raise


def test_tensors_of_both_devices_cannot_be_added() -> None:
    with pretended():
        there, here = torch.zeros(2, device=device()), torch.zeros(2)
        with pytest.raises(RuntimeError, match=r"CPU tensors \[2\] beside those of the device"):
            there + here


@pytest.mark.parametrize(
    "wait",
    [
        torch.Tensor.item,
        torch.Tensor.cpu,
        torch.Tensor.tolist,
        torch.Tensor.nonzero,
        lambda x: x[x > 0],
        lambda x: x.new_tensor([1.0]),
        lambda x: [0] * int(x.long()),
    ],
)
def test_what_waits_is_recorded_with_its_place(wait: object) -> None:
    with pretended() as moves:
        there = torch.ones((), device=device())
        wait(there)  # type: ignore[operator]
    (move,) = (move for move in moves if move.waits)
    assert any(place.startswith("test_pretended_device.py:") for place in move.places)


def test_a_copy_that_is_queued_does_not_wait() -> None:
    with pretended() as moves:
        there = torch.ones(3).to(device(), non_blocking=True)
        assert not [move for move in moves if move.waits]
        assert there.cpu().tolist() == [1.0] * 3
