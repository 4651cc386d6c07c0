"""How a plain talker's modules are made before their weights are loaded."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from cantata.contract.model.plain_talker import PlainTalkerOptions
from cantata.stages.ar.torch_kernels import TorchKernels


@pytest.fixture
def options() -> PlainTalkerOptions:
    return PlainTalkerOptions(TorchKernels(torch.float32), torch.device("cpu"), torch.float32, 64)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(("low", "high"), [(-2.0, 2.0), (1.0, 1.5)])
def test_what_lies_in_memory_delays_no_draw_between_bounds(
    options: PlainTalkerOptions, low: float, high: float
) -> None:
    """torch draws such numbers again and again, until all are within the bounds."""
    left_there = torch.full((8,), 1e30)
    with options.building():
        nn.init.trunc_normal_(left_there, a=low, b=high)
    assert ((left_there >= low) & (left_there <= high)).all()


def test_no_random_number_is_drawn(options: PlainTalkerOptions) -> None:
    state = torch.get_rng_state()
    with options.building():
        layer = nn.Linear(3, 2)
        nn.init.normal_(layer.weight, mean=0.5)
    assert torch.equal(torch.get_rng_state(), state)
    assert (layer.weight == 0.5).all()
