"""Rank 0: has its own stage, and has the other ranks make the same calls."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from setproctitle import getproctitle

from cantata.config import ArDeployment
from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.request import StageInput
from cantata.contract.model.pipeline import StageSpec
from cantata.contract.process.messages import StageCapacity
from cantata.contract.process.stage import Stage, StepResult, Working
from cantata.stages.ar.ranks.share import MODULE, LoadShare, RankCall, load_share
from cantata.stages.common.ranks import RankGroup, RankPeer, listening


class RankedStage:
    """Implements `contract.process.stage.Stage` over the same stage in several processes.

    Args:
        stage: rank 0's own.
        others: the other ranks.
    """

    reuse = None
    """It keeps no results."""

    def __init__(self, stage: Stage, others: RankGroup) -> None:
        self._stage, self._others = stage, others

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
        self._others.broadcast(RankCall("add", (request_id, payload), {"batch": batch}))
        self._others.call(partial(self._stage.add, request_id, payload, batch=batch))

    def extend(self, request_id: str, payload: StageInput, *, final: bool) -> None:
        """Extend it on every rank; raises as the stage."""
        self._others.broadcast(RankCall("extend", (request_id, payload), {"final": final}))
        self._others.call(partial(self._stage.extend, request_id, payload, final=final))

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Every rank needs what comes on edges."""
        self._others.broadcast(RankCall("receive", (tuple(chunks),)))
        self._others.call(partial(self._stage.receive, chunks))

    def credit(self, request_id: str, samples: int) -> None:
        """An AR stage makes no sound."""

    def abort(self, request_id: str) -> None:
        """Free it on every rank."""
        self._others.broadcast(RankCall("abort", (request_id,)))
        self._others.call(partial(self._stage.abort, request_id))

    def has_work(self) -> bool:
        """The same on every rank."""
        return self._stage.has_work()

    def get_due_in_s(self) -> float | None:
        """None, as the stage."""
        return self._stage.get_due_in_s()

    def step(self) -> StepResult:
        """One step on every rank."""
        self._others.broadcast(RankCall("step"))
        return self._others.call(self._stage.step)

    def get_counts(self) -> Mapping[str, int]:
        """What each rank holds."""
        return self._stage.get_counts()

    def start_thread(self, working: Working) -> None:
        """None: the work is done inside `step`."""

    def close(self) -> None:
        """End the other ranks, then the own engine."""
        self._others.close()
        self._stage.close()


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
    group = RankGroup(peers)
    group.watch()
    return RankedStage(stage, group)
