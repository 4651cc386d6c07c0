"""Layers in int8: whole sums, rows that need no company, and no weight left beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cantata.config import ArDeployment
from cantata.contract.data.errors import ConfigError
from cantata.contract.process.stage import Stage
from cantata.stages.ar import build_stage
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.driving import TALKER, speak, speak_alone, varied_payloads

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(
        not torch.cpu._is_vnni_supported(), reason="this processor has no VNNI instructions"
    ),
]

DEPLOYMENT = ArDeployment(slots=8, max_model_len=128, max_num_batched_tokens=256)
INT8 = DEPLOYMENT.model_copy(update={"quantization": "int8"})


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("int8_talker")
    save_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="module")
def stage(checkpoint: Path) -> Iterator[Stage]:
    stage = build_stage(TALKER, checkpoint, INT8)
    yield stage
    stage.close()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("outputs", "inputs"), [(96, 64), (130, 50), (256, 1088)])
def test_a_product_is_the_sum_of_whole_numbers(
    stage: Stage, dtype: torch.dtype, outputs: int, inputs: int
) -> None:
    from cantata.stages.ar.int8_products import Int8Product

    numbers = torch.Generator().manual_seed(outputs)
    weight = torch.randn(outputs, inputs, generator=numbers).to(dtype)
    bias = torch.randn(outputs, generator=numbers).to(dtype)
    rows = torch.randn(40, inputs, generator=numbers).to(dtype)
    rows[3] *= 1000  # an outlier spoils no other row
    weight[5] = 0

    product = Int8Product(weight)
    whole = product(rows, bias)
    expected = _multiply_by_numpy(rows, weight, bias)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    worst = (whole.float() - expected).abs().amax(dim=1) / expected.abs().amax(dim=1)
    assert whole.dtype == dtype
    assert float(worst.max()) < tolerance
    for count in (1, 2, 3, 7, 39):
        assert torch.equal(product(rows[:count], bias), whole[:count])
        assert torch.equal(product(rows[-count:], bias), whole[-count:])


def _multiply_by_numpy(
    rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """[R, I] and [O, I] -> [R, O] float32: both rounded to 127 steps, summed as int64."""
    scales, whole = [], []
    for matrix in (rows, weight):
        values = matrix.float().numpy().astype(np.float64)
        scale = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-30) / 127
        scales.append(scale)
        whole.append(np.rint(np.float32(values) / np.float32(scale)).astype(np.int64))
    summed = (whole[0] @ whole[1].T) * scales[0] * scales[1].T
    return torch.from_numpy((summed + bias.float().numpy()).astype(np.float32))


def test_in_company_equals_alone_to_the_bit(stage: Stage) -> None:
    requests = varied_payloads(8)
    alone = speak_alone(stage, requests)
    together = speak(stage, requests, every=1)
    for request_id, frames in alone.items():
        np.testing.assert_array_equal(together[request_id], frames, err_msg=request_id)


def test_no_row_needs_company_and_no_layer_keeps_its_weight(stage: Stage) -> None:
    talker: Any = stage._talker  # type: ignore[attr-defined]
    assert talker.min_rows == 1
    stacks = [module for module in talker.modules() if isinstance(module, nn.ModuleList)]
    matrices = [
        name
        for stack in stacks
        for name, parameter in stack.named_parameters()
        if parameter.ndim > 1 and parameter.numel()
    ]
    assert stacks
    assert matrices == []


def test_hidden_states_stay_near_those_of_whole_weights(stage: Stage, checkpoint: Path) -> None:
    exact = build_stage(TALKER, checkpoint, DEPLOYMENT)
    try:
        expected, found = _collect_hidden(exact), _collect_hidden(stage)
    finally:
        exact.close()
    apart = float((found - expected).norm() / expected.norm())
    assert 0 < apart < 0.05


def _collect_hidden(stage: Stage) -> torch.Tensor:
    """[R, D] of each request's last prompt position."""
    talker: Any = stage._talker  # type: ignore[attr-defined]
    requests = varied_payloads(8)
    hidden = []
    for request_id, payload in requests.items():
        stage.add(request_id, payload, batch=False)
        stage.step()
        hidden.append(talker.sampled_hidden[0].clone())
        stage.abort(request_id)
    return torch.stack(hidden)


def test_a_processor_without_the_instructions_is_told_so(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: False)
    with pytest.raises(ConfigError, match="no VNNI"):
        build_stage(TALKER, checkpoint, INT8)
