"""A codec stage in virtual time: a talker delivers frames at a pace, listeners play what they get.

The decoder's steps take a + b n seconds for n frames, by the same clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cantata.config import CodecDeployment
from cantata.contract.data.chunks import Chunk, Payload, Pcm
from cantata.contract.process.messages import StepCost
from cantata.stages.codec import CodecStage
from running_sum import SAMPLES_PER_FRAME, RunningSumDecoder
from stage_chunks import codes_chunk

PERIOD_S = 0.08


class TimedDecoder(RunningSumDecoder):
    """Its steps take time."""

    sample_rate = round(SAMPLES_PER_FRAME / PERIOD_S)

    def __init__(self, cost: StepCost) -> None:
        self.now_s, self.steps, self._cost = 0.0, 0, cost

    def decode(self, state: torch.Tensor, slots: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        self.now_s += self._cost.seconds(codes.shape[0] * codes.shape[1])
        self.steps += 1
        return super().decode(state, slots, codes)


@dataclass
class Listener:
    """One request: when its frames come, and what its listener hears of them."""

    begins_s: float
    frames: int
    """That come, in all."""
    is_open: bool = False
    """Whether no end comes with the last: its text may go on."""
    delivered: int = 0
    heard: int = 0
    first_s: float | None = None
    """When its first packet left, after it began."""
    ended_s: float = 0.0
    """When its last packet left, after it began."""
    late_s: float = 0.0
    """The longest silence within its sound."""
    samples: tuple[np.ndarray, ...] = ()

    def take(self, chunk: Chunk[Payload], now_s: float) -> None:
        assert isinstance(chunk.payload, Pcm)
        if self.first_s is None:
            self.first_s = now_s - self.begins_s
        elif chunk.payload.units:
            ends_s = self.begins_s + self.first_s + self.heard * PERIOD_S
            self.late_s = max(self.late_s, now_s - ends_s)
        self.ended_s = now_s - self.begins_s
        self.heard += chunk.payload.units // SAMPLES_PER_FRAME
        self.samples += (chunk.payload.samples,)


class CodecWorld:
    """A codec stage that has been warmed up as a server does: alone, then in all slots.

    Args:
        cost: of the decoder's steps.
        talker_s: from one frame of every stream to the next.
        device: of the deployment.
    """

    def __init__(
        self, cost: StepCost, *, talker_s: float, device: str = "cuda", max_batch_frames: int = 32
    ) -> None:
        self._decoder, self._talker_s = TimedDecoder(cost), talker_s
        self._deployment = CodecDeployment(
            device=device, slots=16, max_batch_frames=max_batch_frames, credit_s=1000.0
        )
        self._stage = CodecStage(self._decoder, self._deployment, lambda: self._decoder.now_s)
        for streams in (1, self._deployment.slots):
            self.play([Listener(0.0, 30) for _ in range(streams)])

    def play(self, listeners: Sequence[Listener]) -> int:
        """Serve these to their ends; returns how many steps that took."""
        began_s, before = self._decoder.now_s, self._decoder.steps
        for listener in listeners:
            listener.begins_s += began_s
        held, next_s = dict[str, Listener](), began_s
        while any(listener.heard < listener.frames for listener in listeners):
            while next_s <= self._decoder.now_s:
                self._deliver(listeners, held, next_s)
                talks = any(listener.delivered < listener.frames for listener in listeners)
                next_s = next_s + self._talker_s if talks else math.inf
            if self._stage.has_work():
                for chunk in self._stage.step().chunks:
                    held[chunk.request_id].take(chunk, self._decoder.now_s)
            else:
                self._sleep(next_s)
        for name, listener in held.items():
            if listener.is_open:
                self._stage.abort(name)
        assert set(self._stage.get_counts().values()) == {0}
        return self._decoder.steps - before

    def _sleep(self, until_s: float) -> None:
        """As the stage's loop: until something arrives or the stage is due."""
        now_s, due_in_s = self._decoder.now_s, self._stage.get_due_in_s()
        due_s = math.inf if due_in_s is None else now_s + due_in_s
        self._decoder.now_s = max(min(until_s, due_s), now_s)
        assert self._decoder.now_s < math.inf, "the stage waits for what never comes"

    def _deliver(
        self, listeners: Sequence[Listener], held: dict[str, Listener], at_s: float
    ) -> None:
        """One step of the talker: a frame of each request that speaks."""
        chunks = []
        for number, listener in enumerate(listeners):
            name = str(number)
            if not listener.begins_s <= at_s or listener.delivered == listener.frames:
                continue
            if name not in held:
                held[name] = listener
                self._stage.add(name, None, batch=False)
            codes = np.full((1, 2), listener.delivered % 7, np.int32)
            final = listener.delivered + 1 == listener.frames and not listener.is_open
            chunks.append(codes_chunk(name, listener.delivered, codes, final))
            listener.delivered += 1
        if chunks:
            self._stage.receive(chunks)
