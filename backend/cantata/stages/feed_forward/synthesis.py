"""The feed-forward stage of a model that makes sound itself: it leaves part by part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cantata.config import FeedForwardDeployment
from cantata.contract.data.chunks import Chunk, Payload, Pcm
from cantata.contract.data.errors import (
    CantataError,
    RequestFailed,
)
from cantata.contract.data.request import StageInput
from cantata.contract.model.feed_forward import Synthesizer
from cantata.contract.process.messages import StageCapacity
from cantata.contract.process.stage import StepResult, Working
from cantata.scheduling.part_plan import PartPlan, PendingPart
from cantata.stages.common.intake import check_slot
from cantata.stages.common.plugin_call import guard_plugin_call

FRAME_S = 0.1
"""Seconds of sound by which such a stage's work is measured; its parts have any length."""
_FAILURE = "the sound could not be made"


@dataclass(slots=True)
class _SynthesisStream:
    """One request's place in the stage."""

    parts: Iterator[Pcm]
    credit_samples: int
    """How much sound the listener has credit for."""
    batch: bool
    stretch: float
    sent_chunks: int = 0
    sent_samples: int = 0
    started_s: float | None = None
    """When the listener began to play its first samples, or will, after what it plays now."""


class SynthesisStage:
    """Implements `contract.process.stage.Stage` over a `Synthesizer`.

    A step makes one part of one request, by `PartPlan`. A request that its listener has no credit
    for waits. An abort acts between two parts.

    Args:
        model: makes the sound.
        port: where it leaves.
        deployment: its limits.
        clock: seconds, monotonic.
    """

    reuse = None
    """It keeps no results."""

    def __init__(
        self,
        model: Synthesizer,
        port: str,
        deployment: FeedForwardDeployment,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._port = port
        self._slots = deployment.slots
        self._credit_samples = int(deployment.credit_s * model.sample_rate)
        self._clock = clock
        self._plan = PartPlan()
        self._streams: dict[str, _SynthesisStream] = {}

    @property
    def capacity(self) -> StageCapacity:
        """Slots, and the sound's format."""
        return StageCapacity(
            slots=self._slots,
            frame_period_s=FRAME_S,
            sample_rate=self._model.sample_rate,
            channels=self._model.channels,
            batches_requests=False,
            credit_samples=self._credit_samples,
        )

    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        playout_deadline_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        """Take a place; nothing is computed yet.

        Raises:
            ProtocolViolation: the id is in use, or there is no input.
            Overloaded: every slot is taken.
        """
        payload = check_slot(request_id, payload, self._streams, self._slots)
        parts = self._synthesize(payload)
        self._streams[request_id] = _SynthesisStream(
            parts, self._credit_samples, batch, stretch, started_s=playout_deadline_s
        )

    def extend(self, request_id: str, payload: StageInput, *, final: bool) -> None:
        """Requests are added to this stage complete."""

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """No edge ends here."""

    def credit(self, request_id: str, samples: int) -> None:
        """The listener took `samples`."""
        stream = self._streams.get(request_id)
        if stream is not None:
            stream.credit_samples += samples

    def abort(self, request_id: str) -> None:
        """Forget the request, and let its generator clean up."""
        stream = self._streams.pop(request_id, None)
        close = getattr(stream and stream.parts, "close", None)
        if close is not None:
            close()

    def has_work(self) -> bool:
        """Whether a part can be made."""
        return any(stream.credit_samples > 0 for stream in self._streams.values())

    def get_due_in_s(self) -> None:
        """None: only credit can make work."""

    def step(self) -> StepResult:
        """Make the next part of one request."""
        begun_s = self._clock()
        request_id = self._plan.choose(self._list_pending(), begun_s).request_id
        stream = self._streams[request_id]
        try:
            part = self._make_next_part(stream)
        except CantataError as error:
            self.abort(request_id)
            return StepResult(failures=[(request_id, error)])
        if part is None:
            del self._streams[request_id]
            part, final = Pcm(np.zeros((0, self._model.channels), np.float32)), True
        else:
            final = False
        done_s = self._clock()
        self._plan.record(
            stream.sent_chunks, done_s - begun_s, part.units / self._find_played_per_s(stream)
        )
        if stream.started_s is None:
            stream.started_s = done_s
        stream.sent_samples += part.units
        stream.credit_samples -= part.units
        chunk = Chunk(request_id, self._port, stream.sent_chunks, part, final)
        stream.sent_chunks += 1
        return StepResult([chunk])

    def get_counts(self) -> Mapping[str, int]:
        """Requests held."""
        return {"requests": len(self._streams)}

    def start_thread(self, working: Working) -> None:
        """None: the work is done inside `step`."""

    def close(self) -> None:
        """End what is unfinished."""
        for request_id in list(self._streams):
            self.abort(request_id)

    def _list_pending(self) -> list[PendingPart]:
        """The next parts of all requests whose listeners have credit."""
        return [
            PendingPart(
                request_id, stream.sent_chunks, self._compute_deadline(stream), stream.batch
            )
            for request_id, stream in self._streams.items()
            if stream.credit_samples > 0
        ]

    def _compute_deadline(self, stream: _SynthesisStream) -> float | None:
        """When the listener has played everything; None: there was nothing yet."""
        if stream.started_s is None:
            return None
        return stream.started_s + stream.sent_samples / self._find_played_per_s(stream)

    def _find_played_per_s(self, stream: _SynthesisStream) -> float:
        """Samples that the listener plays in one second."""
        return self._model.sample_rate * stream.stretch

    def _synthesize(self, payload: StageInput) -> Iterator[Pcm]:
        """WHY a generator: a model may plan the whole sentence when it is called. That, too, waits
        for the request's turn, and is part of what its first part takes."""
        yield from self._model.synthesize(payload)

    @torch.inference_mode()
    def _make_next_part(self, stream: _SynthesisStream) -> Pcm | None:
        """The next part that has sound or words; None at the end."""
        with guard_plugin_call(_FAILURE):
            for part in stream.parts:
                self._check(part)
                if part.units or part.words:
                    return part
        return None

    def _check(self, part: object) -> None:
        if not isinstance(part, Pcm):
            raise RequestFailed(f"the model made {type(part).__name__}; its port takes Pcm")
        shape, channels = part.samples.shape, self._model.channels
        if len(shape) != 2 or shape[1] != channels or part.samples.dtype != np.float32:
            output = f"{list(shape)} samples of {part.samples.dtype}"
            raise RequestFailed(f"the model made {output}; they must be [N, {channels}] float32")
