"""Rows that need what other stages make: in any order, in parts, with text that comes meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from cantata.contract.data.chunks import Codes, Payload, Pcm, Rows
from cantata.contract.data.errors import InvalidRequest, ProtocolViolation
from cantata.contract.model.embedding_source import (
    DeferredRows,
    EmbeddingSource,
    StaticEmbeddings,
    StreamingEmbeddings,
    TalkerPrompt,
)


@dataclass(frozen=True)
class Text:
    number: float


def rows(*numbers: float) -> Rows:
    return Rows(np.array(numbers, np.float32)[:, None])


def codes(*numbers: int) -> Codes:
    return Codes(np.array(numbers, np.int32)[:, None])


def build_prompt(encoded: Sequence[Any]) -> TalkerPrompt:
    values = np.concatenate([payload.values for payload in encoded]).astype(np.float32)
    return TalkerPrompt(torch.from_numpy(values), len(values), max_frames=9)


def begin(encoded: Sequence[Payload]) -> EmbeddingSource:
    return StaticEmbeddings(build_prompt(encoded))


PARTS: tuple[tuple[Payload, bool], ...] = (
    (rows(1.0), False),
    (rows(2.0), True),
    (codes(3, 4), True),
)


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 0, 1)])
def test_a_prompt_is_there_once_everything_has_come(order: Sequence[int]) -> None:
    source = DeferredRows((Rows, Codes), begin)
    for payload, final in (PARTS[place] for place in order):
        assert source.open
        assert (source.prompt(), source.more()) == (None, None)
        source.feed(payload, final=final)
    prompt = source.prompt()
    assert prompt is not None
    assert prompt.rows[:, 0].tolist() == [1, 2, 3, 4]
    assert not source.open
    assert source.more() is None


def test_text_that_comes_meanwhile_follows_the_prompt_in_order() -> None:
    def grow(encoded: Sequence[Payload]) -> EmbeddingSource:
        return StreamingEmbeddings(
            build_prompt(encoded), lambda text: torch.tensor([[text.number]])
        )

    source = DeferredRows((Rows,), grow)
    source.feed(Text(5.0), final=False)
    source.feed(Text(6.0), final=False)
    source.feed(rows(1.0), final=True)
    assert source.prompt() is not None
    assert source.open
    source.feed(Text(7.0), final=True)
    assert not source.open
    assert [float(source.more()) for _ in range(3)] == [5, 6, 7]
    assert source.more() is None


@pytest.mark.parametrize("payload", [Pcm(np.zeros((2, 1), np.float32)), codes(1)])
def test_what_nobody_waits_for_is_an_error(payload: Payload) -> None:
    source = DeferredRows((Rows,), begin)
    with pytest.raises(ProtocolViolation, match=r"waits for \['Rows'\], not"):
        source.feed(payload, final=True)
    source.feed(rows(1.0), final=True)
    with pytest.raises(ProtocolViolation, match=r"waits for \[\], not Rows"):
        source.feed(rows(1.0), final=True)


def test_why_a_request_cannot_begin_is_its_error() -> None:
    def refuse(encoded: Sequence[Payload]) -> EmbeddingSource:
        raise InvalidRequest("no room", "input")

    with pytest.raises(InvalidRequest, match="no room"):
        DeferredRows((Rows,), refuse).feed(rows(1.0), final=True)
