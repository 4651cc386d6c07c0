"""Stages without weights that count what they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cantata.contract.data.chunks import Chunk, Codes, Payload
from cantata.contract.data.request import StageInput
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.process.messages import StageCapacity
from cantata.contract.process.stage import StepResult
from stage_chunks import codes_chunk, pcm_chunk

SAMPLES = 80
PIPELINE = PipelineSpec(
    stages=(
        StageSpec("first", StageKind.AR, "nowhere:talker"),
        StageSpec("last", StageKind.CODEC, "nowhere:decoder"),
    ),
    edges=(EdgeSpec("first.codes", "last"), EdgeSpec("last.pcm", CLIENT)),
)


class CountingTalker:
    """A frame per request and step; six frames per request."""

    capacity = StageCapacity(slots=4, frame_period_s=0.08)

    def __init__(self) -> None:
        self.made: dict[str, int] = {}
        self.most = 0
        self.closed = False

    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        playout_deadline_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        assert payload == {"frames": 6}  # type: ignore[comparison-overlap]
        self.made[request_id] = 0
        self.most = max(self.most, len(self.made))

    def extend(self, request_id: str, payload: StageInput, *, final: bool) -> None: ...
    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None: ...
    def credit(self, request_id: str, samples: int) -> None: ...

    def abort(self, request_id: str) -> None:
        self.made.pop(request_id, None)

    def has_work(self) -> bool:
        return bool(self.made)

    def get_due_in_s(self) -> float | None:
        return None

    def step(self) -> StepResult:
        chunks = []
        for request_id, index in list(self.made.items()):
            self.made[request_id] += 1
            codes = np.zeros((1, 2), np.int32)
            chunks.append(codes_chunk(request_id, index, codes, index == 5))
            if index == 5:
                del self.made[request_id]
        return StepResult(chunks)

    def get_counts(self) -> Mapping[str, int]:
        return {"requests": len(self.made)}

    def close(self) -> None:
        self.closed = True


class CountingDecoder(CountingTalker):
    """Decodes whatever has come, as long as it was allowed to."""

    capacity = StageCapacity(slots=8, frame_period_s=0.08, sample_rate=1000)

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Chunk[Payload]] = []
        self.credited: set[str] = set()

    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        playout_deadline_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        self.made[request_id] = 0

    def credit(self, request_id: str, samples: int) -> None:
        self.credited.add(request_id)

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        self.waiting.extend(c for c in chunks if isinstance(c.payload, Codes))

    def has_work(self) -> bool:
        return bool(self.waiting)

    def step(self) -> StepResult:
        ready, self.waiting = self.waiting, []
        assert {chunk.request_id for chunk in ready} <= self.credited
        for chunk in ready:
            if chunk.final:
                del self.made[chunk.request_id]
        return StepResult(
            [
                pcm_chunk(
                    c.request_id,
                    c.index,
                    np.zeros((SAMPLES * c.payload.units, 1), np.float32),
                    c.final,
                )
                for c in ready
            ]
        )
