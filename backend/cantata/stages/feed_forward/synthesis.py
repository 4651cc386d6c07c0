"""The feed-forward stage of a model that makes sound itself: it leaves part by part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from cantata.config import FeedForwardDeployment
from cantata.contract.data.chunks import Chunk, Payload, Pcm
from cantata.contract.data.errors import (
    CantataError,
    RequestFailed,
)
from cantata.contract.data.request import StageInput
from cantata.contract.model.feed_forward import ConcurrentSynthesizer, Synthesizer
from cantata.contract.process.messages import StageCapacity
from cantata.contract.process.stage import StepResult, Working
from cantata.scheduling.part_plan import PartPlan, PendingPart
from cantata.stages.common.intake import check_slot
from cantata.stages.common.plugin_call import guard_plugin_call
from cantata.stages.feed_forward.part_makers import PartMakers

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

    def close(self) -> None:
        """Let the generator clean up; nothing else uses it."""
        close = getattr(self.parts, "close", None)
        if close is not None:
            close()


class SynthesisStage:
    """Implements `contract.process.stage.Stage` over a `Synthesizer`.

    A step makes one part of one request, by `PartPlan`, and where the model allows it, other
    requests' parts at the same time. A request that its listener has no credit for waits. An abort
    acts between two parts.

    Args:
        model: makes the sound.
        port: where it leaves.
        deployment: its limits.
        cores: for a model that makes several parts at the same time.
        clock: seconds, monotonic.
    """

    reuse = None
    """It keeps no results."""

    def __init__(
        self,
        model: Synthesizer,
        port: str,
        deployment: FeedForwardDeployment,
        cores: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._port = port
        self._slots = deployment.slots
        self._credit_samples = int(deployment.credit_s * model.sample_rate)
        self._clock = clock
        self._plan = PartPlan()
        is_concurrent = isinstance(model, ConcurrentSynthesizer) and model.is_concurrent
        self._makers = PartMakers(cores if is_concurrent else 1, clock)
        self._streams: dict[str, _SynthesisStream] = {}
        self._aborted: dict[str, _SynthesisStream] = {}
        """Those whose part is still being made."""

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
        """Forget the request, and let its generator clean up, after the part that is being made."""
        stream = self._streams.pop(request_id, None)
        if stream is None:
            return
        if request_id in self._makers.requests:
            self._aborted[request_id] = stream
        else:
            stream.close()

    def has_work(self) -> bool:
        """Whether a part can be made, or is being made."""
        return bool(self._makers.requests) or any(
            stream.credit_samples > 0 for stream in self._streams.values()
        )

    def get_due_in_s(self) -> None:
        """None: only credit can make work."""

    def step(self) -> StepResult:
        """Start as many parts as can be made at the same time, and return the first that is
        made."""
        self._start_parts()
        chunks: list[Chunk[Payload]] = []
        failures: list[tuple[str, CantataError]] = []
        for request_id, made in self._makers.wait().items():
            if (aborted := self._aborted.pop(request_id, None)) is not None:
                aborted.close()
            elif isinstance(made.result, CantataError):
                self.abort(request_id)
                failures.append((request_id, made.result))
            else:
                chunks.append(self._take_part(request_id, made.result, made.seconds))
        return StepResult(chunks, failures)

    def _start_parts(self) -> None:
        pending, now_s = self._list_pending(), self._clock()
        is_made = self._makers.requests
        making = [part for part in pending if part.request_id in is_made]
        waiting = [part for part in pending if part.request_id not in is_made]
        while waiting and self._makers.has_room:
            chosen = self._plan.choose(waiting, now_s, making)
            if not self._plan.fits_beside(chosen, making, now_s):
                break
            waiting.remove(chosen)
            making.append(chosen)
            stream = self._streams[chosen.request_id]
            self._makers.start(chosen.request_id, partial(self._make_next_part, stream))

    def _take_part(self, request_id: str, made: Pcm | None, seconds: float) -> Chunk[Payload]:
        """Args: made: None: the sound has ended. seconds: that it took."""
        stream = self._streams[request_id]
        part = Pcm(np.zeros((0, self._model.channels), np.float32)) if made is None else made
        if made is None:
            del self._streams[request_id]
        self._plan.record(stream.sent_chunks, seconds, part.units / self._find_played_per_s(stream))
        if stream.started_s is None:
            stream.started_s = self._clock()
        stream.sent_samples += part.units
        stream.credit_samples -= part.units
        chunk = Chunk(request_id, self._port, stream.sent_chunks, part, final=made is None)
        stream.sent_chunks += 1
        return chunk

    def get_counts(self) -> Mapping[str, int]:
        """Requests held, with those that were aborted while their part was being made."""
        return {"requests": len(self._streams) + len(self._aborted)}

    def start_thread(self, working: Working) -> None:
        """None: the work is done inside `step`."""

    def close(self) -> None:
        """End what is unfinished."""
        self._makers.close()
        for stream in (*self._streams.values(), *self._aborted.values()):
            stream.close()
        self._streams.clear()
        self._aborted.clear()

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
