"""What a stage will hold is summed and compared with what is free before it is allocated."""

from __future__ import annotations

import pytest
import torch

from cantata.contract.data.errors import ConfigError
from cantata.stages.ar.request_state import Layout, RequestStates
from cantata.stages.common.memory import check_memory

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
