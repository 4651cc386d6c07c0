"""Rank 0: has its own model and the other ranks do the same."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import count
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload
from cantata.contract.data.errors import CantataError
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.model.denoiser import Denoiser
from cantata.stages.common.ranks import RankGroup
from cantata.stages.diffusion.ranks.group import Advance, Begin, Forget


class SharedJob:
    """A job that every rank has. Once nobody holds it here, the others forget it."""

    def __init__(self, number: int, state: Any) -> None:
        self.number, self.state = number, state


class RankedDenoiser:
    """Implements `contract.model.denoiser.Denoiser` over the same model in several processes.
    `model`: rank 0's own."""

    def __init__(self, model: Denoiser, others: RankGroup) -> None:
        self._model, self._others = model, others
        self._numbers = count()
        # Takes a job wherever its last reference goes, be it in the middle of a message.
        self._gone: SimpleQueue[int | None] = SimpleQueue()
        self._forgetting = threading.Thread(target=self._forget, name="rank-forget", daemon=True)
        self._forgetting.start()

    def awaits(self, inputs: Any) -> Collection[str]:
        return self._model.awaits(inputs)

    def begin(self, inputs: Any, arrived: Mapping[str, Payload]) -> SharedJob:
        """A job on every rank; raises as the model."""
        number = next(self._numbers)
        self._others.broadcast(Begin(number, inputs, arrived))
        job = SharedJob(number, self._others.call(lambda: self._model.begin(inputs, arrived)))
        # At the end of this process the others end too.
        weakref.finalize(job, self._gone.put, number).atexit = False
        return job

    def steps(self, job: SharedJob) -> int:
        return self._model.steps(job.state)

    def previews(self, job: SharedJob) -> int:
        """How many previews the caller wants to see."""
        return self._model.previews(job.state)

    def size(self, job: SharedJob) -> ForwardSize:
        """The size of a job's next step, over all ranks."""
        return self._model.size(job.state)

    def group(self, job: SharedJob) -> Hashable:
        return self._model.group(job.state)

    def advance(self, jobs: Sequence[SharedJob]) -> Sequence[CantataError | None]:
        """One step of each job on every rank."""
        self._others.broadcast(Advance(tuple(job.number for job in jobs)))
        states = [job.state for job in jobs]
        output: Sequence[CantataError | None] = self._others.call(
            lambda: self._model.advance(states)
        )
        return output

    def preview(self, job: SharedJob) -> NDArray[np.uint8]:
        return self._model.preview(job.state)

    def latents(self, job: SharedJob) -> NDArray[np.float32]:
        """[L, E]."""
        return self._model.latents(job.state)

    def close(self) -> None:
        """End the other ranks."""
        self._gone.put(None)
        self._forgetting.join()
        self._others.close()

    def _forget(self) -> None:
        """Have jobs freed at once: the next call may be long in coming."""
        while (number := self._gone.get()) is not None:
            self._others.broadcast(Forget(number))
