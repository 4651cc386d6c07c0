"""Which steps of a backbone vLLM records."""

from __future__ import annotations

from typing import Any

import pytest

from cantata.config import ArDeployment
from cantata.contract.model.talker import Talker
from cantata.stages.ar.backbone_graphs import MAX_PROMPT_POSITIONS, list_graph_sizes


def make_deployment(**settings: Any) -> ArDeployment:
    return ArDeployment(**{"device": "cuda", "slots": 20, **settings})


def test_steps_of_all_requests_and_of_prompts_are_recorded() -> None:
    expected = [1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512]
    assert list_graph_sizes(make_deployment(), Talker) == expected
    assert list_graph_sizes(make_deployment(device="cuda:1"), Talker) == expected


@pytest.mark.parametrize("slots", [1, 3, 7, 16, 33, 64, 200, 512, 513, 700, 1024])
@pytest.mark.parametrize("most", [1024, 2048, 8192])
def test_no_step_is_padded_to_more_than_twice_its_positions(slots: int, most: int) -> None:
    sizes = list_graph_sizes(make_deployment(slots=slots, max_num_batched_tokens=most), Talker)
    assert list(sizes) == sorted(set(sizes))
    assert slots in sizes, "a step in which every request speaks pads nothing"
    assert sizes[-1] == max(slots, MAX_PROMPT_POSITIONS)
    for positions in range(1, sizes[-1] + 1):
        padded = next(size for size in sizes if size >= positions)
        assert padded < 2 * positions, positions
        assert positions < 8 or padded <= 1.5 * positions, positions


@pytest.mark.parametrize(("slots", "most"), [(1, 16), (16, 16), (20, 50), (4, 300), (64, 32)])
def test_a_graph_holds_no_more_than_a_step(slots: int, most: int) -> None:
    sizes = list_graph_sizes(make_deployment(slots=slots, max_num_batched_tokens=most), Talker)
    assert sizes[-1] == most
    assert min(slots, most) in sizes


@pytest.mark.parametrize("settings", [{"device": "cpu"}, {"cuda_graphs": False}])
def test_a_cpu_and_who_wants_none_have_none(settings: dict[str, Any]) -> None:
    assert not list_graph_sizes(make_deployment(**settings), Talker)


def test_a_forward_pass_that_cannot_be_recorded_is_not() -> None:
    class Unsteady(Talker):
        records_forward = False

    assert list_graph_sizes(make_deployment(), Talker)
    assert not list_graph_sizes(make_deployment(), Unsteady)
