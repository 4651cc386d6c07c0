"""Output of earlier segments, passed to models that continue from it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any

from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.request import PipelineRequest
from cantata.contract.model.pipeline import CLIENT, EdgeSpec


class ContinuationHistory:
    """Of one text, as long as it is spoken.

    Args:
        requests: its pieces.
    """

    def __init__(self, requests: Iterable[PipelineRequest]) -> None:
        self._edges = {
            earlier: EdgeSpec(request.continuation.source, CLIENT)
            for request in requests
            if request.continuation is not None
            for earlier in request.continuation.earlier
        }
        self._outputs: dict[str, Payload] = {}

    def find_edge(self, request: PipelineRequest) -> EdgeSpec | None:
        """On which a piece says what a later one needs; None: none needs it."""
        return self._edges.get(request.request_id)

    async def keep(self, request: PipelineRequest, chunks: AsyncIterator[Chunk[Payload]]) -> None:
        """Take what a piece has said, to its end."""
        parts: list[Any] = [chunk.payload async for chunk in chunks]
        self._outputs[request.request_id] = type(parts[0]).join(parts)

    def with_history(self, request: PipelineRequest) -> PipelineRequest:
        """The piece with the inputs that it needs behind those before it."""
        continuation = request.continuation
        if continuation is None:
            return request
        outputs = [self._outputs[earlier] for earlier in continuation.earlier]
        return replace(request, inputs=continuation.inputs(outputs), continuation=None)
