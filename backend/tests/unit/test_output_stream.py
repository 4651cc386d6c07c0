"""What arrives of an open request, and what must not."""

from __future__ import annotations

import numpy as np
import pytest

from cantata.contract.data.chunks import Chunk, Codes, Payload, Progress
from cantata.contract.data.errors import RequestFailed
from cantata.contract.data.request import PipelineRequest
from cantata.pipeline.output_stream import CreditReturn, OpenRequest

TOKEN = Codes(np.ones((1, 1), np.int32))
NOTHING = Progress(np.zeros((0, 0, 3), np.uint8), 1, 2)


def opened() -> OpenRequest:
    """An answer in text: the denoiser's progress is none of it."""
    request = PipelineRequest("a", {}, without=frozenset({"denoiser.progress"}))
    return OpenRequest(request, ["denoiser"], ["denoiser.codes"], 30, CreditReturn({}, {}))


def chunk(port: str, payload: Payload, *, final: bool = False) -> Chunk[Payload]:
    return Chunk("a", port, 0, payload, final)


async def test_a_request_is_over_with_the_last_chunk_of_the_ports_that_it_has() -> None:
    request = opened()
    request.arrive("denoiser", chunk("codes", TOKEN, final=True), 0)
    assert request.complete
    assert (await anext(request.outputs["denoiser.codes"])).final


async def test_a_chunk_of_a_port_that_it_does_without_fails_it() -> None:
    request = opened()
    request.arrive("denoiser", chunk("progress", NOTHING), 0)
    with pytest.raises(RequestFailed, match=r"denoiser\.progress, which the request does without"):
        await anext(request.outputs["denoiser.codes"])
    assert not request.complete
