"""Layers in fp8, by vLLM's kernels. Deployments have them on GPUs alone; on a CPU vLLM has kernels
for the same numbers, which run here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from cantata.config import ArDeployment
from cantata.contract.process.stage import Stage
from cantata.stages.ar import build_stage
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.driving import TALKER, speak, speak_alone, varied_payloads

pytestmark = pytest.mark.vllm

DEPLOYMENT = ArDeployment(dtype="bfloat16", slots=8, max_model_len=128, max_num_batched_tokens=256)
FP8 = DEPLOYMENT.model_copy(update={"quantization": "fp8"})


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fp8_talker")
    save_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="module")
def stage(checkpoint: Path) -> Iterator[Stage]:
    stage = build_stage(TALKER, checkpoint, FP8)
    yield stage
    stage.close()


@pytest.mark.parametrize(("outputs", "inputs"), [(96, 64), (130, 80), (256, 1088)])
def test_a_product_is_that_of_rounded_numbers(stage: Stage, outputs: int, inputs: int) -> None:
    from vllm.config import set_current_vllm_config

    from cantata.stages.ar.fp8_products import Fp8Product

    numbers = torch.Generator().manual_seed(outputs)
    weight = torch.randn(outputs, inputs, generator=numbers).to(torch.bfloat16)
    bias = torch.randn(outputs, generator=numbers).to(torch.bfloat16)
    rows = torch.randn(40, inputs, generator=numbers).to(torch.bfloat16)
    rows[3] *= 1000  # an outlier spoils no other row
    with set_current_vllm_config(stage._engine._config):  # type: ignore[attr-defined]
        whole = Fp8Product(weight)(rows, bias)
    expected = _round(rows) @ _round(weight).T + bias.float()
    worst = (whole.float() - expected).abs().amax(dim=1) / expected.abs().amax(dim=1)
    assert whole.dtype == torch.bfloat16
    assert float(worst.max()) < 0.01
    exact = rows.float() @ weight.float().T + bias.float()
    apart = float((whole.float() - exact)[4:].norm() / exact[4:].norm())
    assert 0.005 < apart < 0.06  # three bits of mantissa, in both


def _round(matrix: torch.Tensor) -> torch.Tensor:
    """[N, I] -> the nearest fp8 numbers by row, with a scale for each, in float32."""
    values = matrix.float()
    scale = values.abs().amax(dim=1, keepdim=True) / torch.finfo(torch.float8_e4m3fn).max
    return (values / scale).to(torch.float8_e4m3fn).float() * scale


def test_it_speaks_and_keeps_no_weight_beside_the_rounded(stage: Stage) -> None:
    requests = varied_payloads(4)
    alone = speak_alone(stage, requests)
    assert speak(stage, requests, every=1).keys() == alone.keys()
    assert all(np.isfinite(frames).all() for frames in alone.values())
    talker: Any = stage._talker  # type: ignore[attr-defined]
    stacks = [module for module in talker.modules() if isinstance(module, nn.ModuleList)]
    matrices = {
        parameter.dtype
        for stack in stacks
        for parameter in stack.parameters()
        if parameter.ndim > 1 and parameter.numel() > max(parameter.shape)
    }
    assert matrices == {torch.float8_e4m3fn}


def test_hidden_states_stay_near_those_of_whole_weights(stage: Stage, checkpoint: Path) -> None:
    exact = build_stage(TALKER, checkpoint, DEPLOYMENT)
    try:
        expected, found = _collect_hidden(exact), _collect_hidden(stage)
    finally:
        exact.close()
    apart = float((found - expected).norm() / expected.norm())
    assert 0.005 < apart < 0.15


def _collect_hidden(stage: Stage) -> torch.Tensor:
    """[R, D] of each request's last prompt position."""
    talker: Any = stage._talker  # type: ignore[attr-defined]
    hidden = []
    for request_id, payload in varied_payloads(8).items():
        stage.add(request_id, payload, batch=False)
        stage.step()
        hidden.append(talker.sampled_hidden[0].float().clone())
        stage.abort(request_id)
    return torch.stack(hidden)


@pytest.mark.parametrize(("device", "dtype"), [("cpu", "bfloat16"), ("cuda", "float32")])
def test_a_deployment_has_it_on_gpus_alone_and_in_sixteen_bits(device: str, dtype: Any) -> None:
    assert ArDeployment(device="cuda:1", dtype="bfloat16", quantization="fp8").on_gpu
    with pytest.raises(ValidationError, match="'fp8': device is 'cuda', dtype 'bfloat16' or"):
        ArDeployment(device=device, dtype=dtype, quantization="fp8")
