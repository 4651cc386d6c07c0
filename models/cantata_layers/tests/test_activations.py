"""Activations by hand are torch's own, whatever stands beside a number."""

from __future__ import annotations

import torch
from torch.nn import functional

from cantata_layers.activations import silu


def test_silu_is_torch_s_and_place_has_no_effect() -> None:
    x = torch.cat((torch.linspace(-30, 30, 5001), torch.tensor([-1e4, -100.0, 0.0, 100.0, 1e4])))
    torch.testing.assert_close(silu(x), functional.silu(x), rtol=2e-6, atol=1e-6)
    for start in range(1, 40):
        assert torch.equal(silu(x[start:]), silu(x)[start:])
