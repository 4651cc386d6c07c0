"""The process of one stage: builds the stage, then moves messages and chunks and steps it.

Event driven: it blocks on its sockets while the stage has nothing to do, and looks at them between
steps while it has. Control messages go before chunks, so that every chunk finds its request.
"""

from __future__ import annotations

import gc
import logging
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from setproctitle import setproctitle

from cantata.config import ArDeployment, CodecDeployment, StageDeployment
from cantata.connectors.base import ChunkSender
from cantata.connectors.hold import ChunkHold
from cantata.connectors.socket import SocketReceiver, SocketSender
from cantata.connectors.wire import BlockingChannel
from cantata.contract.chunks import Chunk, PcmChunk
from cantata.contract.errors import CantataError
from cantata.contract.messages import (
    Abort,
    Aborted,
    Credit,
    Drain,
    Drained,
    Extend,
    Failed,
    Measured,
    Output,
    Ping,
    Pong,
    Ready,
    Register,
    StageCapacity,
    ToStage,
)
from cantata.contract.pipeline import StageSpec
from cantata.contract.stage import Stage
from cantata.contract.steps import StepCost
from cantata.engine.first_chunks import FirstChunks
from cantata.engine.step_meter import StepMeter
from cantata.logs import LogFormat, configure_logging, of_request
from cantata.scheduling.intake import Intake
from cantata.scheduling.pace import Pace

logger = logging.getLogger(__name__)

UNLIMITED_CREDIT = sys.maxsize
"""Samples; more than any request has."""
NEWS = 0.05
"""By how much what steps take has changed when it is told anew."""
INTAKE_SHARE = 0.4
"""Of a frame period: requests are taken in for so long between two steps."""


@dataclass(frozen=True, slots=True)
class StageLaunch:
    """Everything that a stage process is told when it is spawned."""

    title: str
    """Process name, such as `cantata:talker:0`."""
    spec: StageSpec
    checkpoint: Path
    deployment: StageDeployment
    async_chunk: bool
    inputs: tuple[socket.socket, ...]
    """Listening sockets, one for each edge that ends here."""
    outputs: tuple[Path, ...]
    """Where the edges that start here are listened to."""
    log_level: int
    log_format: LogFormat


def run(launch: StageLaunch, control_socket: socket.socket) -> None:
    """Entry point of a stage process; returns when drained or when the server is gone.

    Args:
        control_socket: connected to the server.
    """
    _settle_in(launch)
    control = BlockingChannel(control_socket)
    try:
        outputs = [SocketSender(path) for path in launch.outputs]
        stage = build_stage(launch.spec, launch.checkpoint, launch.deployment)
        control.send(Ready(stage.capacity))
        # What is loaded stays until the end: collections, those of closing too, may skip it.
        gc.freeze()
        loop = StageLoop(
            stage, control, launch.inputs, outputs, launch.async_chunk, name=launch.spec.name
        )
        loop.run()
    except ConnectionError:
        logger.info("the server is gone")
    # Tearing the interpreter down takes seconds and gives back nothing that an exit does not.
    logging.shutdown()
    os._exit(0)


def build_stage(spec: StageSpec, checkpoint: Path, deployment: StageDeployment) -> Stage:
    """Build a stage of any kind; each kind is imported only in the processes that run it."""
    match deployment:
        case ArDeployment():
            from cantata.engine import ar

            return ar.build_stage(spec.factory, checkpoint, deployment)
        case CodecDeployment():
            from cantata.engine import codec

            return codec.build_stage(spec.factory, checkpoint, deployment)


def _settle_in(launch: StageLaunch) -> None:
    setproctitle(launch.title)
    configure_logging(launch.log_level, launch.log_format, launch.title)
    # Ctrl-C reaches the whole process group; the server decides when its stages end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settle_threads()


def settle_threads() -> None:
    """Load torch with as many threads as a stage has."""
    # One thread per process: idle OpenMP threads spin and starve the neighbours. Whoever has
    # idle cores sets the variable.
    threads = os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Read when torch is loaded; its C++ side warns of the NUMA binding that vLLM asks for.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    import torch

    torch.set_num_threads(int(threads))


class StageLoop:
    """Drives one stage until it is drained or its server is gone.

    Args:
        clock: monotonic seconds; tells how long steps take.
        name: the stage's.
    """

    def __init__(
        self,
        stage: Stage,
        control: BlockingChannel,
        listeners: Iterable[socket.socket],
        outputs: Iterable[ChunkSender],
        async_chunk: bool,
        clock: Callable[[], float] = time.monotonic,
        *,
        name: str,
    ) -> None:
        self._stage = stage
        self._clock = clock
        self._pace = Pace()
        self._told: StepCost | None = None
        self._meter = StepMeter()
        self._first_chunks = FirstChunks(name)
        self._control = control
        self._outputs = list(outputs)
        self._hold = None if async_chunk else ChunkHold()
        self._intake: Intake[Register] = Intake(stage.capacity.frame_period_s)
        self._draining = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        for listener in listeners:
            self._selector.register(listener, selectors.EVENT_READ)

    def run(self) -> None:
        """Receive, step, publish, until drained.

        Raises:
            ConnectionError: the server is gone.
        """
        try:
            while not (self._draining and self._is_idle()):
                self._receive(wait=not (self._stage.has_work() or self._intake))
                if self._stage.has_work():
                    self._step()
            self._stage.close()
            self._control.send(Drained())
        finally:
            self._close()

    def _step(self) -> None:
        began_s = self._clock()
        result = self._stage.step()
        ended_s = self._clock()
        self._measure(result.chunks, ended_s - began_s)
        for request_id, error in result.failures:
            self._fail(request_id, error)
        self._publish(result.chunks, ended_s)

    def _measure(self, chunks: Sequence[Chunk], seconds: float) -> None:
        self._meter.add(seconds, len(chunks))
        self._pace.measure(frames_in(chunks, self._stage.capacity), seconds)
        cost = self._pace.cost
        if cost is not None and self._is_news(cost):
            self._told = cost
            self._control.send(Measured(cost))

    def _is_news(self, cost: StepCost) -> bool:
        """Whether what was told last is off by now, for one request or for all."""
        if self._told is None:
            return True
        told, extremes = self._told, (1, self._stage.capacity.slots)
        return any(abs(cost.seconds(n) / told.seconds(n) - 1) > NEWS for n in extremes)

    def _close(self) -> None:
        for key in list(self._selector.get_map().values()):
            self._selector.unregister(key.fileobj)
            if isinstance(key.fileobj, BlockingChannel | SocketReceiver | socket.socket):
                key.fileobj.close()
        self._selector.close()
        for sender in self._outputs:
            sender.close()

    def _receive(self, *, wait: bool) -> None:
        """Take in what has arrived; some of it stays where it is if a step is due first.

        Encoding a prompt may take as long as some steps: many requests at once are taken in over
        several of them, so that those who are spoken to hear no gap. Chunks are all taken: where a
        stage is slower than the one before it, the most urgent may be the last.
        """
        ready = self._readable(wait=wait)
        due_s = self._clock() + INTAKE_SHARE * self._stage.capacity.frame_period_s
        # A chunk's Register was readable before the chunk was: with all requests taken in first,
        # one message of every edge in `ready` is safe to take.
        while self._take_in(due_s) and ready:
            for end in ready:
                if isinstance(end, socket.socket):
                    self._selector.register(SocketReceiver(end), selectors.EVENT_READ)
                elif isinstance(end, SocketReceiver):
                    self._take_from(end)
            ready = self._readable(wait=False)

    def _take_in(self, due_s: float) -> bool:
        """Handle what the server says, and take in requests, at least one; False when a step is due
        before all of it is done, or would be after another request like the last."""
        took_s = 0.0
        while True:
            emptied = self._empty_control(due_s)
            if took_s and self._is_due(due_s - took_s):
                return emptied and not self._intake
            register = self._intake.take()
            if register is None:
                return emptied
            began_s = self._clock()
            self._add(register)
            took_s = self._clock() - began_s

    def _empty_control(self, due_s: float) -> bool:
        while self._control in self._readable(wait=False):
            self._handle(self._control.receive())
            if self._is_due(due_s):
                return False
        return True

    def _is_due(self, due_s: float) -> bool:
        return self._stage.has_work() and self._clock() > due_s

    def _readable(self, *, wait: bool) -> list[object]:
        return [key.fileobj for key, _ in self._selector.select(None if wait else 0)]

    def _take_from(self, receiver: SocketReceiver) -> None:
        try:
            chunks = receiver.get()
        except ConnectionError:  # upstream ended; its successor connects anew
            self._selector.unregister(receiver)
            receiver.close()
        else:
            self._first_chunks.take(chunks)
            self._stage.receive(chunks)

    def _handle(self, message: ToStage) -> None:
        match message:
            case Register(request_id, _, batch, runs_dry_s):
                now_s = self._clock()
                self._intake.put(request_id, message, now_s, runs_dry_s=runs_dry_s, batch=batch)
            case Extend(request_id, payload, final):
                if (register := self._intake.take(request_id)) is not None:
                    self._add(register)
                with of_request(request_id):
                    try:
                        self._stage.extend(request_id, payload, final=final)
                    except CantataError as error:
                        self._fail(request_id, error)
            case Abort(request_ids):
                for request_id in request_ids:
                    self._intake.take(request_id)
                    with of_request(request_id):
                        logger.debug("aborted")
                        self._stage.abort(request_id)
                    self._forget(request_id)
                self._control.send(Aborted(request_ids))
            case Credit(request_id, samples):
                self._stage.credit(request_id, samples)
            case Ping(number):
                held = {} if self._hold is None else {"held_chunks": len(self._hold)}
                counts = {**self._stage.counts(), **held}
                self._control.send(Pong(number, counts, self._meter.report))
            case Drain():
                self._draining = True

    def _add(self, register: Register) -> None:
        request_id = register.request_id
        with of_request(request_id):
            try:
                self._stage.add(
                    request_id,
                    register.payload,
                    batch=register.batch,
                    runs_dry_s=register.runs_dry_s,
                )
            except CantataError as error:
                self._fail(request_id, error)
                return
            logger.debug("taken in")
            self._first_chunks.expect(request_id)
            if self._hold is not None:
                # What is held back reaches no listener that could give credit for it.
                self._stage.credit(request_id, UNLIMITED_CREDIT)

    def _publish(self, chunks: Iterable[Chunk], now_s: float) -> None:
        complete = chunks if self._hold is None else self._hold.pass_on(chunks)
        leaving = self._first_chunks.sign(complete, now_s)
        if not leaving:
            return
        for sender in self._outputs:
            sender.put(leaving)
        if not self._outputs:
            self._control.send(Output(tuple(c for c in leaving if isinstance(c, PcmChunk))))

    def _fail(self, request_id: str, error: CantataError) -> None:
        with of_request(request_id):
            logger.info("failed: %s", error)
        self._forget(request_id)
        self._control.send(Failed(request_id, error))

    def _forget(self, request_id: str) -> None:
        self._first_chunks.forget(request_id)
        if self._hold is not None:
            self._hold.drop(request_id)

    def _is_idle(self) -> bool:
        return not self._intake and not any(self._stage.counts().values())


def frames_in(chunks: Sequence[Chunk], capacity: StageCapacity) -> int:
    """How many frames these hold, as codes or as sound."""
    samples_per_frame = round(capacity.frame_period_s * (capacity.sample_rate or 0))
    return sum(
        len(chunk.samples) // samples_per_frame if isinstance(chunk, PcmChunk) else len(chunk.codes)
        for chunk in chunks
    )
