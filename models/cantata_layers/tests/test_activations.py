"""Activations by hand are torch's own, whatever stands beside a number."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch.nn import functional

from cantata_layers.exact_layers import elu, gelu_tanh, silu

PAIRS = (
    (silu, functional.silu),
    (elu, functional.elu),
    (gelu_tanh, partial(functional.gelu, approximate="tanh")),
)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_an_activation_is_torch_s_and_place_has_no_effect(
    ours: Callable[[torch.Tensor], torch.Tensor], theirs: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    x = torch.cat((torch.linspace(-30, 30, 5001), torch.tensor([-1e4, -100.0, 0.0, 100.0, 1e4])))
    torch.testing.assert_close(ours(x), theirs(x), rtol=2e-6, atol=1e-6)
    for start in range(1, 40):
        assert torch.equal(ours(x[start:]), ours(x)[start:])
