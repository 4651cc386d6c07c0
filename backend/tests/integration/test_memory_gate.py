"""Stages say what they will hold, and load once it is known that all of it fits. On a CPU here,
with stages that are asked as those on a GPU are."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors import safe_open

from cantata.config import (
    ArDeployment,
    CodecDeployment,
    RecognitionDeployment,
    parse_deployment,
)
from cantata.contract.data.errors import ConfigError
from cantata.contract.data.request import PipelineRequest
from cantata.contract.model.pipeline import StageKind, StageSpec
from cantata.pipeline import gpu_memory, supervision
from cantata.pipeline.gpu_memory import GpuMemory
from cantata.pipeline.orchestrator import Orchestrator
from cantata.stages.process.memory_needs import measure_stage
from tiny_talker.checkpoint import HEAD_DIM, MAX_POSITIONS, save_tiny_checkpoint
from tiny_talker.driving import TALKER
from tiny_talker.inputs import TinyInput
from tiny_talker.plugin import PIPELINE

pytestmark = [pytest.mark.integration, pytest.mark.vllm]

PLENTY = 1 << 40
DEPLOYMENT = ArDeployment(slots=4, max_model_len=128)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(folder)
    return folder


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """All stages are asked, and all are on one GPU."""
    monkeypatch.setattr(supervision, "asks_for_memory", lambda stage: True)
    monkeypatch.setattr(gpu_memory, "list_cards", lambda stage: range(1))


def make_orchestrator(checkpoint: Path, free: int, colocate: str | None) -> Orchestrator:
    stages = {
        "talker": {"slots": 4, "max_model_len": 128},
        "decoder": {"slots": 4, "colocate": colocate},
    }
    deployment = parse_deployment({"stages": stages}, PIPELINE)
    memory = GpuMemory(lambda card: free)
    return Orchestrator(PIPELINE, checkpoint, deployment, logging.WARNING, gpu_memory=memory)


@pytest.mark.usefixtures("asked")
@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("colocate", [None, "talker"])
async def test_what_does_not_fit_is_refused_before_anything_loads(
    checkpoint: Path, colocate: str | None
) -> None:
    before = set(psutil.Process().children(recursive=True))
    orchestrator = make_orchestrator(checkpoint, 1 << 20, colocate)
    with pytest.raises(ConfigError) as refused:
        await orchestrator.start()
    number = r"\d+\.\d\d GiB"
    talker = f"'talker': weights {number}, keys and values {number}, states {number}, CUDA {number}"
    decoder = "" if colocate else f"CUDA {number}"
    stages = rf"\({talker}; 'decoder': {decoder}\)"
    said = rf"GPU 0: {number} of memory are needed {stages}, 0.00 GiB are free; lower slots"
    assert re.match(said, refused.value.message)
    left = {p for p in psutil.Process().children(recursive=True) if "cantata:" in p.name()}
    assert not [process for process in left - before if "fork-server" not in process.name()]


@pytest.mark.usefixtures("asked")
@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("colocate", [None, "talker"])
async def test_what_fits_loads_and_speaks(checkpoint: Path, colocate: str | None) -> None:
    orchestrator = make_orchestrator(checkpoint, PLENTY, colocate)
    await orchestrator.start()
    try:
        spoken = PipelineRequest("r", {"talker": TinyInput(text=[1, 2], max_frames=9)})
        async with orchestrator.open(spoken) as stream:
            made = [new.payload.samples async for new in orchestrator.sound(stream)]
        assert len(np.concatenate(made))
    finally:
        await orchestrator.stop(deadline_s=5)


def test_weights_keys_and_states_are_known_without_loading_them(checkpoint: Path) -> None:
    needs = measure_stage(TALKER, checkpoint, DEPLOYMENT)
    with safe_open(checkpoint / "model.safetensors", "pt") as weights:
        sizes = [weights.get_tensor(name).nbytes for name in weights.keys()]  # noqa: SIM118
    rotation = MAX_POSITIONS * HEAD_DIM * 4
    # What vLLM's attention has besides: scales of its caches.
    assert 0 <= needs["weights"] - sum(sizes) - rotation < 1024
    # A head of keys and one of values, of 32 float32 values, in each of two layers.
    per_position = 2 * 2 * 32 * 4
    assert needs["keys and values"] == (4 * 128 + 32) * per_position
    assert needs["states"] > 5 * 128 * 64 * 4  # a slot more than requests, of rows alone
    assert needs["graphs"] == 0


def test_ranks_share_weights_and_keys(checkpoint: Path) -> None:
    alone = measure_stage(TALKER, checkpoint, DEPLOYMENT)
    two = DEPLOYMENT.model_copy(update={"tensor_parallel": 2})
    shared = measure_stage(TALKER, checkpoint, two)
    assert 0.5 < shared["weights"] / alone["weights"] < 1
    assert shared["keys and values"] == alone["keys and values"] // 2


def test_of_a_model_that_is_not_made_for_it_nothing_is_known(tmp_path: Path) -> None:
    spec = StageSpec("decoder", StageKind.CODEC, f"{__name__}:load_nothing")
    assert measure_stage(spec, tmp_path, CodecDeployment()) == {}


def test_recognizers_count_with_their_files(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(bytes(1000))
    spec = StageSpec("listener", StageKind.RECOGNITION, "nowhere:listener")
    assert measure_stage(spec, tmp_path, RecognitionDeployment()) == {"weights": 1000}


def load_nothing(checkpoint: Path, device: object) -> object:
    raise NotImplementedError("no kernel for meta")
