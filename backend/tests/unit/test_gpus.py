"""Stages on several GPUs: which there are, and which one a stage sees."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from cantata.config import (
    KINDS,
    ArDeployment,
    CodecDeployment,
    Deployment,
    DiffusionDeployment,
)
from cantata.config.deployment import KindSupport
from cantata.config.diffusion import HookedStage, ParallelStage
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.denoiser import Parallel
from cantata.pipeline import devices
from cantata.utils.gpus import VISIBLE, list_gpus, see_gpus


@pytest.fixture
def visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE, "GPU-a, 5,7")


@pytest.mark.parametrize(
    ("device", "on_gpu", "gpu", "seen"),
    [
        ("cpu", False, None, "cpu"),
        ("cuda", True, None, "cuda"),
        ("cuda:0", True, 0, "cuda"),
        ("cuda:3", True, 3, "cuda"),
    ],
)
def test_a_device_may_name_a_gpu(device: str, on_gpu: bool, gpu: int | None, seen: str) -> None:
    stage = CodecDeployment(device=device, slots=3)
    assert (stage.on_gpu, stage.gpu) == (on_gpu, gpu)
    assert stage.on_its_gpu() == CodecDeployment(device=seen, slots=3)


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:-1", "cuda:x", "cpu:0", ""])
def test_other_devices_are_refused_with_those_that_are_valid(device: str) -> None:
    with pytest.raises(ValidationError, match="valid: 'cpu', 'cuda', or 'cuda:1'"):
        ArDeployment(device=device)


def test_ranks_have_a_gpu_each_so_none_is_named() -> None:
    parallel = ParallelStage(kind=Parallel.BRANCHES, ranks=2)
    assert DiffusionDeployment(device="cuda", parallel=parallel).on_gpu
    with pytest.raises(ValidationError, match="with `parallel` it is 'cuda' or 'cpu'"):
        DiffusionDeployment(device="cuda:1", parallel=parallel)


@pytest.mark.usefixtures("visible")
def test_a_stage_sees_its_own_gpu_alone() -> None:
    assert list_gpus() == ["GPU-a", "5", "7"]
    see_gpus(1)
    assert os.environ[VISIBLE] == "5"


@pytest.mark.usefixtures("visible")
def test_the_ranks_of_a_stage_see_one_gpu_each_from_its_own_on() -> None:
    see_gpus(1, 2)
    assert os.environ[VISIBLE] == "5,7"


@pytest.mark.parametrize("support", KINDS.values(), ids=[kind.value for kind in KINDS])
def test_a_stage_of_any_kind_may_name_its_gpu(support: KindSupport) -> None:
    stage = support.deployment(device="cuda:2")
    assert (stage.gpu, stage.num_gpus, stage.on_its_gpu().device) == (2, 1, "cuda")


def _check(stages: Mapping[str, str]) -> None:
    made = {name: CodecDeployment(device=device) for name, device in stages.items()}
    devices.check_devices(Deployment(stages=made))


@pytest.mark.usefixtures("visible")
def test_a_gpu_that_is_not_there_is_refused_before_anything_loads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devices, "_find_missing_for_cuda", lambda: None)
    _check({"talker": "cuda:2", "codec": "cuda", "encoder": "cpu"})
    valid = "valid here: 'cpu', 'cuda:0', 'cuda:1', 'cuda:2'"
    with pytest.raises(ConfigError, match=f"stage 'codec': device 'cuda:3'; {valid}"):
        _check({"talker": "cuda", "codec": "cuda:3"})


@pytest.mark.usefixtures("visible")
@pytest.mark.parametrize(
    "stage",
    [
        ArDeployment(device="cuda:1", tensor_parallel=3),
        DiffusionDeployment(
            device="cuda",
            parallel=ParallelStage(kind=Parallel.ULYSSES, ranks=4),
            hooked=HookedStage(),
        ),
    ],
)
def test_more_ranks_than_there_are_gpus_are_refused_with_both_numbers(
    stage: ArDeployment | DiffusionDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_find_missing_for_cuda", lambda: None)
    needed = rf"stage 'one': {stage.num_gpus} ranks need as many GPUs from 'cuda.*' on; 3 are"
    with pytest.raises(ConfigError, match=needed):
        devices.check_devices(Deployment(stages={"one": stage}))


def test_without_a_gpu_none_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_find_missing_for_cuda", lambda: None)
    monkeypatch.setenv(VISIBLE, "")
    with pytest.raises(ConfigError, match=r"device 'cuda'; valid here: 'cpu'$"):
        _check({"codec": "cuda"})


def test_where_nobody_can_say_cuda_itself_will(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_find_missing_for_cuda", lambda: None)
    monkeypatch.setattr(devices, "list_gpus", lambda: None)
    _check({"codec": "cuda:9"})
