"""The loop of a stage process: moves messages and chunks and steps the stage.

Event driven: while the stage is idle, it blocks on its sockets until something arrives or the stage
is due; while the stage has work, it checks them between steps. Control messages go before chunks,
so that every chunk finds its request.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.errors import CantataError, RequestFailed
from cantata.contract.process.messages import (
    Abort,
    Aborted,
    Credit,
    Drained,
    DrainStage,
    Extend,
    Failed,
    Ping,
    Pong,
    Register,
    StepMeasured,
    ToStage,
)
from cantata.contract.process.stage import Stage
from cantata.ipc.shared_heartbeat import HeartbeatPhase, SharedHeartbeat
from cantata.scheduling.edf_queue import EdfQueue
from cantata.stages.process.exchange import UNLIMITED_CREDIT, Exchange
from cantata.stages.process.measuring import StepWatch, count_frames
from cantata.utils.logs import log_for_request

logger = logging.getLogger(__name__)

ADMIT_SHARE = 0.4
"""Part of a frame period for admitting requests between two steps."""


@contextmanager
def _mark_nothing(phase: HeartbeatPhase, request_id: str = "") -> Iterator[None]:
    yield


class StageLoop:
    """Drives one stage until it is drained or its server has exited.

    Args:
        heartbeat: shows the server what the loop is doing.
        clock: monotonic seconds; measures steps.
    """

    def __init__(
        self,
        stage: Stage,
        exchange: Exchange,
        heartbeat: SharedHeartbeat,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stage = stage
        self._exchange = exchange
        self._heartbeat = heartbeat
        self._clock = clock
        self._watch = StepWatch(stage.capacity)
        period_s = stage.capacity.frame_period_s
        self._edf_queue: EdfQueue[Register] = EdfQueue(period_s or 0.0)
        self._mark_phase: Callable[..., AbstractContextManager[None]] = heartbeat.during
        """Marks the calls of this thread."""
        watched = stage.start_thread(lambda: heartbeat.during(HeartbeatPhase.BEGINNING))
        if watched is not None:
            # The stage's thread marks its calls. Those of this one take no time.
            self._mark_phase = _mark_nothing
            exchange.watch(watched)
        self._admit_s = math.inf if period_s is None else ADMIT_SHARE * period_s
        """Seconds for admitting requests between two steps."""
        self._draining = False

    def run(self) -> None:
        """Receive, step, publish, until drained. The process then ends, and the stage with it.
        Raises ConnectionError: the server has exited."""
        try:
            while not (self._draining and self._is_idle()):
                if not (self._stage.has_work() or self._edf_queue):
                    self._exchange.wait(self._stage.get_due_in_s())
                    self._watch.mark_idle(self._clock())
                self._receive()
                if self._stage.has_work():
                    self._step()
            self._exchange.send(Drained())
        finally:
            self._exchange.close()

    def _step(self) -> None:
        began_s = self._clock()
        with self._mark_phase(self._heartbeat.begin_step()):
            result = self._stage.step()
        ended_s = self._clock()
        cost = self._watch.measure(result.chunks, began_s, ended_s) or result.cost
        if cost is not None:
            self._exchange.send(StepMeasured(cost))
        for request_id, error in result.failures:
            self._fail(request_id, error)
        chunks = self._drop_undeclared(result.chunks)
        self._exchange.publish(chunks, ended_s)
        # WHY after that: what is not held here any more has reached the next process.
        for chunk in chunks:
            if chunk.final:
                self._heartbeat.remove(chunk.request_id)
            else:
                self._heartbeat.record_frames(
                    chunk.request_id, count_frames([chunk], self._stage.capacity)
                )

    def _drop_undeclared(self, chunks: Sequence[Chunk[Payload]]) -> Sequence[Chunk[Payload]]:
        """Fail each request that has a chunk which the stage's ports do not declare; returns the
        chunks of the others."""
        problems = {c.request_id: p for c in chunks if (p := self._exchange.find_problem(c))}
        for request_id, problem in problems.items():
            self._stage.abort(request_id)
            self._fail(request_id, RequestFailed(problem))
        return [c for c in chunks if c.request_id not in problems] if problems else chunks

    def _receive(self) -> None:
        """Read what has arrived; some of it stays unread if a step is due first.

        Encoding a prompt may take as long as several steps, so a burst of requests is spread over
        several steps and running streams have no gaps. All chunks are read: if a stage is
        slower than the one before it, the most urgent chunk may be the last.
        """
        ready = self._exchange.edges()
        due_s = self._clock() + self._admit_s
        # A chunk's Register was readable before the chunk: once all requests are admitted,
        # reading one message of every edge in `ready` is safe.
        while self._admit_registered(due_s) and ready:
            for chunks in self._exchange.chunks(ready):
                with self._mark_phase(HeartbeatPhase.STEADY):
                    self._stage.receive(chunks)
            ready = self._exchange.edges()

    def _admit_registered(self, due_s: float) -> bool:
        """Handle the server's messages and admit at least one request. Returns False if some must
        wait because a step is due, or would be after another request as costly as the last."""
        last_admit_s = 0.0
        while True:
            control_drained = self._drain_control(due_s)
            if last_admit_s and self._is_due(due_s - last_admit_s):
                return control_drained and not self._edf_queue
            register = self._edf_queue.take()
            if register is None:
                return control_drained
            began_s = self._clock()
            self._add(register)
            last_admit_s = self._clock() - began_s

    def _drain_control(self, due_s: float) -> bool:
        for message in self._exchange.messages():
            self._handle(message)
            if self._is_due(due_s):
                return False
        return True

    def _is_due(self, due_s: float) -> bool:
        return self._stage.has_work() and self._clock() > due_s

    def _handle(self, message: ToStage) -> None:
        match message:
            case Register(request_id, _, batch, playout_deadline_s, _):
                now_s = self._clock()
                self._edf_queue.put(
                    request_id, message, now_s, playout_deadline_s=playout_deadline_s, batch=batch
                )
            case Extend():
                self._extend(message)
            case Abort(request_ids):
                for request_id in request_ids:
                    self._abort(request_id)
                self._exchange.send(Aborted(request_ids))
            case Credit(request_id, samples):
                self._stage.credit(request_id, samples)
            case Ping(number):
                counts = {**self._stage.get_counts(), **self._exchange.counts}
                report, held = self._watch.report, self._heartbeat.held
                self._exchange.send(Pong(number, counts, report, held, self._stage.reuse))
            case DrainStage():
                self._draining = True

    def _add(self, register: Register) -> None:
        request_id = register.request_id
        with log_for_request(request_id):
            try:
                with self._mark_phase(HeartbeatPhase.BEGINNING, request_id):
                    self._stage.add(
                        request_id,
                        register.payload,
                        batch=register.batch,
                        playout_deadline_s=register.playout_deadline_s,
                        stretch=register.stretch,
                    )
            except CantataError as error:
                self._fail(request_id, error)
                return
            logger.debug("admitted")
            self._heartbeat.hold(request_id, has_prompt=register.payload is not None)
            self._exchange.expect(request_id)
            if self._exchange.holds_back:
                # Sound that is held back reaches no listener that could give credit for it.
                self._stage.credit(request_id, UNLIMITED_CREDIT)

    def _extend(self, message: Extend) -> None:
        request_id = message.request_id
        if (register := self._edf_queue.take(request_id)) is not None:
            self._add(register)
        with log_for_request(request_id):
            try:
                with self._mark_phase(HeartbeatPhase.BEGINNING, request_id):
                    self._stage.extend(request_id, message.payload, final=message.final)
            except CantataError as error:
                self._fail(request_id, error)

    def _abort(self, request_id: str) -> None:
        self._edf_queue.take(request_id)
        with log_for_request(request_id):
            logger.debug("aborted")
            with self._mark_phase(HeartbeatPhase.STEADY, request_id):
                self._stage.abort(request_id)
        self._heartbeat.remove(request_id)
        self._exchange.forget(request_id)

    def _fail(self, request_id: str, error: CantataError) -> None:
        with log_for_request(request_id):
            logger.info("failed: %s", error)
        self._heartbeat.remove(request_id)
        self._exchange.forget(request_id)
        self._exchange.send(Failed(request_id, error))

    def _is_idle(self) -> bool:
        return not self._edf_queue and not any(self._stage.get_counts().values())
