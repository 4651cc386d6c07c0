"""A piece of a text gets what the pieces that it names have said, whole and in its order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import numpy as np

from cantata.contract.data.chunks import Chunk, Codes, Payload
from cantata.contract.data.request import Continuation, PipelineRequest, StageInput
from cantata.contract.model.pipeline import CLIENT, EdgeSpec
from cantata.pipeline.speech_pump import ContinuationHistory

SOURCE = "talker.codes"


def behind(*earlier: str) -> Continuation:
    def inputs(said: Sequence[Any]) -> Mapping[str, StageInput]:
        found: Any = {"talker": [codes.values[:, 0].tolist() for codes in said]}
        return found  # type: ignore[no-any-return]

    return Continuation(earlier, SOURCE, inputs)


def codes(first: int, count: int) -> Codes:
    return Codes(np.arange(first, first + count, dtype=np.int32)[:, None])


async def chunks(name: str, *payloads: Payload) -> AsyncIterator[Chunk[Payload]]:
    for number, payload in enumerate(payloads):
        yield Chunk(name, "codes", number, payload, number == len(payloads) - 1)


async def test_a_piece_takes_up_the_pieces_that_it_names() -> None:
    first, second = PipelineRequest("a", {}), PipelineRequest("b", {})
    third = PipelineRequest("c", {"talker": None}, continuation=behind("b", "a"))  # type: ignore[dict-item]
    earlier = ContinuationHistory([first, second, third])
    for request, said in ((first, (codes(0, 2), codes(2, 1))), (second, (codes(7, 0),))):
        assert earlier.find_edge(request) == EdgeSpec(SOURCE, CLIENT)
        assert earlier.with_history(request) is request
        await earlier.keep(request, chunks(request.request_id, *said))
    taken = earlier.with_history(third)
    assert taken.inputs == {"talker": [[], [0, 1, 2]]}  # type: ignore[comparison-overlap]
    assert (taken.request_id, taken.continuation) == ("c", None)


def test_nothing_is_kept_that_no_piece_needs() -> None:
    pieces = [PipelineRequest("a", {}), PipelineRequest("b", {}, continuation=behind("a"))]
    earlier = ContinuationHistory(pieces)
    assert earlier.find_edge(pieces[1]) is None
    assert ContinuationHistory(pieces[:1]).find_edge(pieces[0]) is None
