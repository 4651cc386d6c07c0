"""Devices of stages: what one will hold is compared with what is free before it is allocated, and
TF32 is one setting."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from pydantic import ValidationError

from cantata.config import CodecDeployment
from cantata.contract.data.errors import ConfigError
from cantata.stages.ar.request_state import Layout, RequestStates
from cantata.stages.common.device import allow_tf32, check_memory

GIB = 1 << 30
NEEDS = {"weights": 3 * GIB, "keys and values": 4 * GIB + GIB // 2}


def test_what_fits_passes() -> None:
    check_memory(NEEDS, 8 * GIB, "cuda", "lower slots")


def test_what_does_not_fit_is_refused_with_all_numbers() -> None:
    with pytest.raises(ConfigError) as refused:
        check_memory(NEEDS, 7 * GIB, "cuda", "lower slots")
    assert str(refused.value) == (
        "7.5 GiB of memory are needed on 'cuda' (weights 3.0 GiB, keys and values 4.5 GiB), "
        "7.0 GiB are free; lower slots"
    )


@pytest.mark.parametrize("slots", [1, 4])
def test_states_are_counted_without_being_made(slots: int) -> None:
    layout = Layout(columns=16, dtype=torch.int64, num_draws=16)

    def states(device: str) -> RequestStates:
        where = torch.device(device)
        return RequestStates(slots, 64, layout, hidden_size=32, dtype=torch.float32, device=where)

    assert states("meta").num_bytes == states("cpu").num_bytes
    # Rows, frames and random numbers of every position; the rest is small.
    assert states("meta").num_bytes > (slots + 1) * 64 * (32 * 4 + 16 * 8 + 16 * 4)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, convolutions.allow_tf32
    yield
    products.allow_tf32, convolutions.allow_tf32 = before


@pytest.mark.parametrize("allowed", [True, False])
def test_products_and_convolutions_are_rounded_alike(allowed: bool) -> None:
    allow_tf32(allowed)
    assert torch.backends.cuda.matmul.allow_tf32 is allowed
    assert torch.backends.cudnn.allow_tf32 is allowed


def test_float32_is_the_default_and_other_precisions_are_refused() -> None:
    assert CodecDeployment().precision == "float32"
    with pytest.raises(ValidationError, match="'float32' or 'tf32'"):
        CodecDeployment(precision="fp8")  # type: ignore[arg-type]
