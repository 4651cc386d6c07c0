"""Runs requests through an AR stage and checks the shape of what it emits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import Chunk, Codes, Rows
from cantata.contract.data.request import SamplingOptions
from cantata.contract.model.pipeline import CODES, LATENTS, ROWS, StageKind, StageSpec
from cantata.contract.process.stage import Stage
from tiny_talker.checkpoint import HIDDEN, LATENT_SIZE, NUM_CODEBOOKS, TEXT_VOCAB
from tiny_talker.inputs import TinyConversation, TinyInput
from tiny_talker.plugin import THINKING

TALKER = StageSpec(
    "talker",
    StageKind.AR,
    "tiny_talker.talker:TinyTalker",
    plain="tiny_talker.plain:load_plain_talker",
)
EXPORTING = THINKING.stage("thinker")
THINKER = replace(EXPORTING, factory="tiny_talker.thinker:TinyThinker")

Frames = NDArray[Any]
"""[T, Q] int32 codes or [T, E] float32 latents."""
MADE = {
    CODES: (Codes, np.int32, NUM_CODEBOOKS),
    LATENTS: (Rows, np.float32, LATENT_SIZE),
    ROWS: (Rows, np.float32, 2 * HIDDEN),
}
"""Of the tiny talkers, by port."""
CONVERSATIONS = {
    f"c{width}": TinyConversation(
        [1, 2, 3, *[9] * (2 * width), 4, 5],
        positions=[
            [0, 1, 2, *[3] * (2 * width), 3 + width, 4 + width],
            [0, 1, 2, *[3] * width, *[4] * width, 3 + width, 4 + width],
            [0, 1, 2, *range(3, 3 + width), *range(3, 3 + width), 3 + width, 4 + width],
        ],
        added={4: [0.5] * HIDDEN},
    )
    for width in (2, 4)
}
"""For a thinker, each about a picture of two rows."""


class Listener:
    """Collects a stage's chunks by request and checks them against the contract."""

    def __init__(self) -> None:
        self.chunks: dict[str, list[Chunk[Codes | Rows]]] = {}
        self.row_chunks: dict[str, list[Chunk[Codes | Rows]]] = {}

    def step(self, stage: Stage) -> None:
        """One step; every chunk continues its request's stream."""
        result = stage.step()
        assert not result.failures
        for chunk in result.chunks:
            port, made = chunk.port, chunk.payload
            kind, dtype, columns = MADE[port]
            assert isinstance(made, kind)
            assert isinstance(made, Codes | Rows)
            assert made.values.dtype == dtype
            assert made.values.shape[1] in (columns, 1)  # a thinker makes tokens
            assert port == ROWS or len(made.values) - made.context_frames in (0, 1)
            earlier = (self.row_chunks if port == ROWS else self.chunks).setdefault(
                chunk.request_id, []
            )
            assert chunk.index == len(earlier)
            assert not (earlier and earlier[-1].final)
            assert chunk.final or len(made.values)
            earlier.append(cast(Chunk[Codes | Rows], chunk))

    def rows(self, request_id: str) -> NDArray[np.float32]:
        """[T, E] in all."""
        assert self.row_chunks[request_id][-1].final
        return np.concatenate([chunk.payload.values for chunk in self.row_chunks[request_id]])

    def frames(self, request_id: str) -> Frames:
        """[T, Q or E] so far."""
        return np.concatenate([chunk.payload.values for chunk in self.chunks[request_id]])

    def finished(self, request_id: str) -> bool:
        return self.chunks.get(request_id, [])[-1:] != [] and self.chunks[request_id][-1].final


def speak(stage: Stage, payloads: Mapping[str, Any], every: int = 0) -> dict[str, Frames]:
    """As `listen`; returns request id -> [T, Q or E] frames."""
    listener = listen(stage, payloads, every)
    return {request_id: listener.frames(request_id) for request_id in payloads}


def listen(stage: Stage, payloads: Mapping[str, Any], every: int = 0) -> Listener:
    """Run requests to their end.

    Args:
        stage: idle.
        payloads: by request id; added in order while there are slots.
        every: steps between two additions; 0 adds as many as fit at once.
    """
    listener, waiting, steps = Listener(), dict(payloads), 0
    while waiting or stage.has_work():
        added = len(payloads) - len(waiting)
        while (
            waiting
            and stage.get_counts()["slots"] < stage.capacity.slots
            and steps >= every * added
        ):
            request_id = next(iter(waiting))
            stage.add(request_id, waiting.pop(request_id), batch=False)
            added += 1
        steps += 1
        if stage.has_work():
            listener.step(stage)
    assert all(listener.finished(request_id) for request_id in payloads)
    return listener


def speak_alone(stage: Stage, payloads: Mapping[str, Any]) -> dict[str, Frames]:
    """Run requests one after the other."""
    frames: dict[str, Frames] = {}
    for request_id, payload in payloads.items():
        frames.update(speak(stage, {request_id: payload}))
    return frames


def varied_payloads(count: int, seed: int = 0) -> dict[str, TinyInput]:
    """Requests that differ in everything: lengths (from one row on), tracks, sampling."""
    random = np.random.default_rng(seed)
    return {
        f"r{index}": TinyInput(
            text=random.integers(0, TEXT_VOCAB, size=1 + 5 * index).tolist(),
            max_frames=int(random.integers(20, 60)),
            min_frames=int(random.integers(0, 15)),
            track=index % 3 == 0,
            sampling=SamplingOptions(
                seed=index,
                temperature=0.0 if index % 4 == 0 else 0.9,
                top_k=8 if index % 2 else 0,
                top_p=0.9 if index % 5 == 1 else 1.0,
                repetition_penalty=1.2 if index % 5 == 2 else 1.0,
            ),
        )
        for index in range(count)
    }


def preempt_all(stage: Stage) -> None:
    """Take every running request's KV blocks away, as vLLM does when memory runs out.

    The engine gives each slot its full length of memory, so this never happens otherwise.
    """
    scheduler = stage._engine._core.scheduler  # type: ignore[attr-defined]
    running = list(scheduler.running)
    before = [request.num_preemptions for request in running]
    assert running
    scheduler.reset_prefix_cache(reset_running_requests=True)
    assert [request.num_preemptions for request in running] == [count + 1 for count in before]


def listen_preempted(stage: Stage, payloads: Mapping[str, Any]) -> Listener:
    """Run requests together to their end, all of them preempted twice."""
    listener = Listener()
    for request_id, payload in payloads.items():
        stage.add(request_id, payload, batch=False)
    for step in range(400):
        if not stage.has_work():
            break
        if step in (3, 20):
            preempt_all(stage)
        listener.step(stage)
    return listener
