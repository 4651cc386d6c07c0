"""Rank 0: has its own stage, and has the other ranks make the same calls."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar

from setproctitle import getproctitle

from cantata.config import ArDeployment
from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.errors import CantataError
from cantata.contract.data.request import StageInput
from cantata.contract.model.pipeline import StageSpec
from cantata.contract.process.messages import StageCapacity
from cantata.contract.process.stage import Stage, StepResult, Working
from cantata.stages.ar.ranks.share import MODULE, LoadShare, RankCall, load_share
from cantata.stages.common.ranks import RankPeer, end_stage, listening

logger = logging.getLogger(__name__)

R = TypeVar("R")


class RankedStage:
    """Implements `contract.process.stage.Stage` over the same stage in several processes.

    Args:
        stage: rank 0's own.
        peers: the other ranks, which have loaded theirs.
    """

    reuse = None
    """It keeps no results."""

    def __init__(self, stage: Stage, peers: Sequence[RankPeer]) -> None:
        self._stage, self._peers = stage, peers

    @property
    def capacity(self) -> StageCapacity:
        """The same on every rank."""
        return self._stage.capacity

    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        playout_deadline_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        """Add the request on every rank; raises as the stage."""
        self._broadcast(RankCall("add", (request_id, payload), {"batch": batch}))
        self._make(partial(self._stage.add, request_id, payload, batch=batch))

    def extend(self, request_id: str, payload: StageInput, *, final: bool) -> None:
        """Extend it on every rank; raises as the stage."""
        self._broadcast(RankCall("extend", (request_id, payload), {"final": final}))
        self._make(partial(self._stage.extend, request_id, payload, final=final))

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Every rank needs what comes on edges."""
        self._broadcast(RankCall("receive", (tuple(chunks),)))
        self._make(partial(self._stage.receive, chunks))

    def credit(self, request_id: str, samples: int) -> None:
        """An AR stage makes no sound."""

    def abort(self, request_id: str) -> None:
        """Free it on every rank."""
        self._broadcast(RankCall("abort", (request_id,)))
        self._make(partial(self._stage.abort, request_id))

    def has_work(self) -> bool:
        """The same on every rank."""
        return self._stage.has_work()

    def get_due_in_s(self) -> float | None:
        """None, as the stage."""
        return self._stage.get_due_in_s()

    def step(self) -> StepResult:
        """One step on every rank."""
        self._broadcast(RankCall("step"))
        return self._make(self._stage.step)

    def get_counts(self) -> Mapping[str, int]:
        """What each rank holds."""
        return self._stage.get_counts()

    def start_thread(self, working: Working) -> None:
        """None: the work is done inside `step`."""

    def close(self) -> None:
        """End the other ranks, then the own engine."""
        for peer in self._peers:
            peer.end()
        self._stage.close()

    def _broadcast(self, call: RankCall) -> None:
        try:
            for peer in self._peers:
                peer.send(call)
        except OSError:
            end_stage("another rank has ended")

    def _make(self, call: Callable[[], R]) -> R:
        """Make a call that every rank makes. A `CantataError` is raised by all of them."""
        try:
            return call()
        except CantataError:
            raise
        except Exception:
            logger.exception("a fault of this rank alone")
            end_stage("the ranks no longer hold the same")


def load_ranks(spec: StageSpec, checkpoint: Path, deployment: ArDeployment) -> RankedStage:
    """Build a stage here and in the processes of the other ranks, all at the same time.

    From then on this process ends if one of the others does, and they end with this one.

    Raises:
        CantataError: it cannot be built; nothing is left of the others.
    """
    with ExitStack() as undo:
        listener = undo.enter_context(listening())
        port = listener.getsockname()[1]
        own, *others = [
            LoadShare(f"{getproctitle()}:rank-{rank}", spec, checkpoint, deployment, rank, port)
            for rank in range(deployment.tensor_parallel)
        ]
        peers, decided = [], threading.Event()
        for load in others:
            peer = RankPeer(MODULE, load)
            undo.callback(peer.end)
            peer.end_stage_unless_loaded(decided)
            peers.append(peer)
        undo.callback(decided.set)
        stage = load_share(own, listener)
        decided.set()
        for peer in peers:
            peer.wait_until_loaded()
        undo.pop_all()
    for peer in peers:
        peer.watch(partial(end_stage, "another rank has ended"))
    return RankedStage(stage, peers)
