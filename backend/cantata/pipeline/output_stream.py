"""One open request: what has arrived at each of its outputs and was not taken yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from cantata.contract.data.chunks import Chunk, Payload, Pcm
from cantata.contract.data.errors import CantataError, ChunkTimeout, RequestFailed
from cantata.contract.data.request import PipelineRequest
from cantata.contract.process.messages import Credit, StageCapacity
from cantata.pipeline.stage_process import StageProcess

CREDITS_PER_WINDOW = 4
"""Credit is returned when a listener has taken this part of what may be made ahead of it, often
enough that the stage never waits for a client that keeps up."""


class CreditReturn:
    """Tells stages how much of their sound was taken. `capacities`: of those that are ready; says
    how much sound they make ahead."""

    def __init__(
        self, stages: Mapping[str, StageProcess], capacities: Mapping[str, StageCapacity]
    ) -> None:
        self._stages, self._capacities = stages, capacities

    async def give(self, request_id: str, source: str, samples: int) -> int:
        """Return credit for these samples if they are enough; how many are still owed."""
        stage = source.partition(".")[0]
        if samples < self._capacities[stage].credit_samples // CREDITS_PER_WINDOW:
            return samples
        await self._stages[stage].send(Credit(request_id, samples))
        return 0


class OutputStream:
    """A request's chunks at one port, in order, to the last one.

    Each sample of sound that is taken gives its stage credit for another. Whatever else is not
    taken is kept; it is small, and sound never waits for it.

    Args:
        source: `stage.port`.
    """

    def __init__(self, source: str, request: OpenRequest, credit: CreditReturn) -> None:
        self.frames = 0
        self.complete = False
        """The last chunk has arrived."""
        self.ended = False
        """The last chunk was taken."""
        self._source = source
        self._request = request
        self._credit = credit
        self._owed = 0
        """Samples that were taken, and whose credit was not returned yet."""
        self._next_index = 0
        # Bounded by what the stage makes without credit, not by the queue.
        self._arrived: asyncio.Queue[Chunk[Payload] | CantataError] = asyncio.Queue()

    def arrive(self, item: Chunk[Payload] | CantataError, frames: int = 0) -> None:
        """What came for this output; a chunk's length in frames."""
        if isinstance(item, Chunk):
            self.complete = item.final
            self.frames += frames
        self._arrived.put_nowait(item)

    def __aiter__(self) -> OutputStream:
        return self

    async def __anext__(self) -> Chunk[Payload]:
        """The next chunk.

        Raises:
            ChunkTimeout: none of the request's outputs had anything in time.
            CantataError: a stage failed the request.
        """
        if self.ended:
            raise StopAsyncIteration
        if self._owed:
            self._owed = await self._credit.give(self._request.request_id, self._source, self._owed)
        item = await self._take()
        if isinstance(item, CantataError):
            raise item
        if item.index != self._next_index:
            raise RequestFailed(
                f"expected chunk {self._next_index} of {self._source}, got {item.index}"
            )
        self._next_index += 1
        self.ended = item.final
        if isinstance(item.payload, Pcm):
            self._owed += item.payload.units
        return item

    async def _take(self) -> Chunk[Payload] | CantataError:
        silence_s = self._request.silence_s
        deadline_s = asyncio.get_running_loop().time() + silence_s
        while True:
            try:
                async with asyncio.timeout_at(deadline_s):
                    return await self._arrived.get()
            except TimeoutError:
                later_s = self._request.last_chunk_s + silence_s
                if later_s <= deadline_s:
                    raise ChunkTimeout(f"no output for {silence_s:g} s") from None
                deadline_s = later_s


class OpenRequest:
    """A request that stages hold.

    Args:
        outputs: what the api receives of it, each `stage.port`.
        silence_s: time without any output after which it fails.
    """

    def __init__(
        self,
        request: PipelineRequest,
        stages: Iterable[str],
        outputs: Iterable[str],
        silence_s: float,
        credit: CreditReturn,
    ) -> None:
        self.request_id = request.request_id
        self.stages = frozenset(stages)
        self.content: list[Any] = [request.inputs]
        """What the stages were given, until the request is closed: by its digest a request is known
        that ends a stage's process again. Sound of a window is 1.9 MB per 30 s; whoever extends a
        request bounds what it adds."""
        self.outputs = {source: OutputStream(source, self, credit) for source in outputs}
        self.silence_s = silence_s
        self.last_chunk_s = 0.0
        """When the latest chunk arrived, on the event loop's clock."""
        self.lost = False
        """A stage that held the request has died."""
        self.pending_aborts: set[str] = set()
        self.abort_done = asyncio.Event()

    @property
    def complete(self) -> bool:
        """Whether every stage has freed the request by itself."""
        return all(output.complete for output in self.outputs.values())

    @property
    def frames(self) -> int:
        """That have arrived at the output that is furthest."""
        return max(output.frames for output in self.outputs.values())

    def arrive(self, stage: str, chunk: Chunk[Payload], frames: int) -> None:
        """A stage's chunk for the api, and its length in frames. One at a port that the request
        does without fails it."""
        self.last_chunk_s = asyncio.get_running_loop().time()
        source = f"{stage}.{chunk.port}"
        if source in self.outputs:
            self.outputs[source].arrive(chunk, frames)
        else:
            self.fail(RequestFailed(f"a chunk of {source}, which the request does without"))

    def fail(self, error: CantataError) -> None:
        """Nothing more comes; every output ends with this error."""
        for output in self.outputs.values():
            output.arrive(error)
