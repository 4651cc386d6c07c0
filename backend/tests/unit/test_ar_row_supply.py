"""Rows that are made while their request speaks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from cantata.contract.model.embedding_source import StaticEmbeddings, TalkerPrompt
from cantata.stages.ar.request_state import Layout, LevelSampling, RequestStates, ResolvedSampling
from cantata.stages.ar.row_supply import SOON, RowSupply

FIRST = LevelSampling(temperature=0.0)
GREEDY = ResolvedSampling(0, FIRST, FIRST, FIRST, repetition_penalty=(1.0, 1.0))


@pytest.fixture
def states() -> RequestStates:
    return RequestStates(3, 16, Layout(2, torch.int64, 2), 4, torch.float32, torch.device("cpu"))


@pytest.fixture
def supply(states: RequestStates) -> RowSupply:
    return RowSupply(states)


def blocks(*lengths: int) -> Iterator[torch.Tensor]:
    yield from (torch.full((length, 4), float(number)) for number, length in enumerate(lengths, 1))


def begin(states: RequestStates, supply: RowSupply, name: str, rows: int, *later: int) -> None:
    prompt = TalkerPrompt(torch.zeros(rows, 4), prompt_len=1, max_frames=9)
    states.add(name, prompt, GREEDY)
    supply.add(name, StaticEmbeddings(prompt, blocks(*later)))


def make_rows(states: RequestStates, name: str) -> list[float]:
    slot = states.get_slot(name)
    return states.rows[slot, : states.last_row[slot] + 1, 0].tolist()


def test_one_block_is_made_ahead_for_the_request_that_needs_it_first(
    states: RequestStates, supply: RowSupply
) -> None:
    begin(states, supply, "long", 4, 2)
    begin(states, supply, "short", 2, 1, 1)
    assert supply.top_up() == []
    assert make_rows(states, "short") == [0, 0, 1]
    assert make_rows(states, "long") == [0] * 4
    supply.top_up()
    assert make_rows(states, "short") == [0, 0, 1, 2]
    supply.top_up()
    assert make_rows(states, "short") == [0, 0, 1, 2]  # this step found that there is no more
    supply.top_up()
    assert make_rows(states, "long") == [0] * 4 + [1, 1]


def test_nothing_is_made_long_before_it_is_needed(states: RequestStates, supply: RowSupply) -> None:
    """A first packet does not wait for the rows of its third second."""
    begin(states, supply, "new", SOON + 2, 3)
    supply.top_up()
    assert len(make_rows(states, "new")) == SOON + 2


def test_all_who_have_none_left_are_given_some(states: RequestStates, supply: RowSupply) -> None:
    for name in ("a", "b"):
        begin(states, supply, name, 1, 2)
    begin(states, supply, "c", 2, 2)
    supply.top_up()
    assert [len(make_rows(states, name)) for name in ("a", "b", "c")] == [3, 3, 2]


def test_a_fault_is_one_requests_own(states: RequestStates, supply: RowSupply) -> None:
    def broken() -> Iterator[torch.Tensor]:
        raise ZeroDivisionError("no such phone")
        yield torch.zeros(0)

    begin(states, supply, "good", 1, 2)
    prompt = TalkerPrompt(torch.zeros(1, 4), prompt_len=1, max_frames=9)
    states.add("bad", prompt, GREEDY)
    supply.add("bad", StaticEmbeddings(prompt, broken()))
    [(request_id, error)] = supply.top_up()
    assert request_id == "bad"
    assert "no such phone" in str(error)
    assert len(make_rows(states, "good")) == 3


def test_who_has_ended_is_forgotten(states: RequestStates, supply: RowSupply) -> None:
    begin(states, supply, "a", 1, 2)
    supply.forget("a")
    supply.forget("never seen")
    states.free("a")
    assert supply.top_up() == []
