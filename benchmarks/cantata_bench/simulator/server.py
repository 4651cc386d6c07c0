"""A simulated server: the production code for decisions, from `plan` to `Admission`, in virtual
time."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from cantata.pipeline.slot_policy import MAX_WAIT_S
from cantata.scheduling.admission import Admission, AdmissionPermit, QueueLimits
from cantata.scheduling.capacity import StagePace, compute_places
from cantata.scheduling.codec_plan import DecodeBatch, PlanLimits, StreamView, plan
from cantata.scheduling.edf_queue import EdfQueue
from cantata.scheduling.playout_buffers import JitterEstimator, PlayoutBuffers
from cantata.scheduling.step_time_model import StepTimeModel
from cantata.stages.process.loop import ADMIT_SHARE
from cantata_bench.listener import Arrival
from cantata_bench.simulator.system import System


class _Processors:
    """The cores that one machine's processes share: with more processes than cores, all become
    slower."""

    def __init__(self, system: System) -> None:
        self._count = system.processors
        self._noise = system.noise
        self._dice = random.Random(0)
        self._busy = 0
        self.slowness = system.busy_start
        """Factor on all times, from other work on the machine."""

    async def work(self, seconds: float) -> float:
        """Take this long, or longer under load. Returns how long it took."""
        if not seconds:
            return 0.0
        self._busy += 1
        took_s = seconds * self.slowness * max(1.0, self._busy / self._count)
        took_s *= self._dice.lognormvariate(0.0, self._noise)
        await asyncio.sleep(took_s)
        self._busy -= 1
        return took_s


@dataclass(slots=True, eq=False)
class _Caller:
    """A request's listener, and the place that it holds."""

    place: AdmissionPermit | None = None
    arrivals: list[Arrival] = field(default_factory=list)
    """When the chunks of all its sentences arrive, by the simulation's clock."""
    playout_deadline_s: float | None = None

    def take(self, at_s: float, audio_s: float) -> None:
        """A packet has arrived."""
        self.arrivals.append((at_s, audio_s))
        self.playout_deadline_s = max(self.playout_deadline_s or at_s, at_s) + audio_s
        if self.place is not None:
            self.place.mark_first_sound()


@dataclass(slots=True, eq=False)
class _SimulatedSentence:
    """One sentence of a request."""

    frames: int
    caller: _Caller
    made: int = 0
    decoded: int = 0
    started_s: float | None = None
    """When its listener began with it, or will, after what it plays now."""
    heard: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class _Packet:
    piece: _SimulatedSentence
    frames: int
    final: bool


class SimulatedServer:
    """Serves until its task is cancelled.

    Args:
        system: its parameters.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._limits = PlanLimits(
            system.max_chunk_frames, system.max_batch_frames, system.frame_period_s
        )
        self._clock = asyncio.get_running_loop().time
        self._processors = _Processors(system)
        self._paces = (StepTimeModel(), StepTimeModel())
        self._jitter = JitterEstimator(system.frame_period_s)
        queue = QueueLimits(max_waiting=system.slots, max_wait_s=MAX_WAIT_S)
        self._playout_buffers = PlayoutBuffers(system.frame_period_s)
        self.admission = Admission(
            system.slots,
            queue,
            self._clock,
            slots=system.slots,
            has_headroom=lambda: self._playout_buffers.has_headroom(self._clock()),
        )
        self._edf_queue: EdfQueue[_SimulatedSentence] = EdfQueue(system.frame_period_s)
        self._speaking: list[_SimulatedSentence] = []
        self._decoding: list[_SimulatedSentence] = []
        self._to_talk, self._to_decode = asyncio.Event(), asyncio.Event()
        self._packets: asyncio.Queue[list[_Packet]] = asyncio.Queue()
        self._orders = 0
        self._places = system.slots
        self._listeners: list[Callable[[], None]] = []

    @property
    def slots(self) -> int:
        """Requests that can run at all."""
        return self._system.slots

    @property
    def free(self) -> int:
        """Requests that would get a place now."""
        return max(0, self._places - self._orders)

    def on_change(self, heard: Callable[[], None]) -> None:
        """Be told whenever a request comes or goes."""
        self._listeners.append(heard)

    async def run(self) -> None:
        """Step the stages, as long as there is something to step."""
        async with asyncio.TaskGroup() as group:
            for loop in (self._talk(), self._decode(), self._send()):
                group.create_task(loop)

    async def warm_up(self) -> None:
        """Speak alone and in every slot at once, as a server does before it is ready."""
        for count in (1, self._system.slots):
            async with asyncio.TaskGroup() as group:
                for _ in range(count):
                    group.create_task(self._speak_piece(_SimulatedSentence(30, _Caller())))
        self._resize()
        self._processors.slowness = 1.0

    @property
    def load(self) -> int:
        """Requests that run or wait."""
        report = self.admission.report
        return report.running + report.waiting

    async def speak(self, sentences: Sequence[int]) -> list[Arrival]:
        """Speak one request, given its sentences' lengths in frames. Returns what arrived when.

        Raises:
            Overloaded: no room now.
        """
        self.admission.check()
        with self._hold_order():
            await self._processors.work(self._system.text_s)
            async with self.admission.admit() as place:
                caller = _Caller(place)
                for frames in sentences:
                    await self._speak_piece(
                        _SimulatedSentence(frames, caller, started_s=caller.playout_deadline_s)
                    )
        return caller.arrivals

    @contextmanager
    def _hold_order(self) -> Iterator[None]:
        self._orders += 1
        self._notify()
        try:
            yield
        finally:
            self._orders -= 1
            self._notify()

    def _notify(self) -> None:
        for heard in self._listeners:
            heard()

    async def _speak_piece(self, piece: _SimulatedSentence) -> None:
        self._edf_queue.put(
            str(id(piece)), piece, self._clock(), playout_deadline_s=piece.started_s, batch=False
        )
        self._decoding.append(piece)
        self._to_talk.set()
        await piece.heard.wait()

    async def _talk(self) -> None:
        while True:
            if not self._edf_queue and not self._speaking:
                self._to_talk.clear()
                await self._to_talk.wait()
            began_s = self._clock()
            new = await self._take_in()
            seconds = (
                self._system.talker.seconds(len(self._speaking)) + new * self._system.prefill_s
            )
            await self._processors.work(seconds)
            self._measure(0, len(self._speaking), self._clock() - began_s)
            for piece in self._speaking:
                piece.made += 1
            self._speaking = [piece for piece in self._speaking if piece.made < piece.frames]
            beginning = sum(piece.started_s is None for piece in self._decoding)
            self._jitter.record_delivery(
                self._clock(), beginning=beginning, listeners=len(self._decoding)
            )
            self._to_decode.set()

    async def _take_in(self) -> int:
        """Encode prompts of waiting requests, for a while; at least one. Returns how many."""
        due_s, new = self._clock() + ADMIT_SHARE * self._system.frame_period_s, 0
        while (piece := self._edf_queue.take()) is not None:
            took_s = await self._processors.work(self._system.prompt_s)
            self._speaking.append(piece)
            new += 1
            if self._clock() + took_s > due_s:
                break
        return new

    async def _decode(self) -> None:
        while True:
            batch = plan(self._list_views(), self._limits, self._clock())
            if batch is None:
                self._to_decode.clear()
                await self._to_decode.wait()
                continue
            frames = batch.frames * len(batch.slots)
            took_s = await self._processors.work(self._system.decoder.seconds(frames))
            self._measure(1, frames, took_s)
            self._jitter.record_batch(took_s)
            self._hand_out(batch)

    def _list_views(self) -> list[StreamView]:
        return [
            StreamView(
                slot=slot,
                ready_frames=0 if self._is_held(piece) else piece.made - piece.decoded,
                started=piece.started_s is not None,
                deadline_s=(
                    math.inf
                    if piece.started_s is None
                    else piece.started_s + piece.decoded * self._system.frame_period_s
                ),
                first_frames=self._jitter.reserve_frames(),
            )
            for slot, piece in enumerate(self._decoding)
        ]

    def _is_held(self, piece: _SimulatedSentence) -> bool:
        """Whether a first frame is held back, as in `CodecStage`."""
        return piece.started_s is None and self._jitter.should_hold_first_packet(
            piece.made,
            complete=piece.made == piece.frames,
            others_speak=any(p is not piece and p.made < p.frames for p in self._decoding),
        )

    def _hand_out(self, batch: DecodeBatch) -> None:
        # While a batch runs, requests are only appended after these.
        pieces = [self._decoding[slot] for slot in batch.slots]
        for piece in pieces:
            piece.started_s = self._clock() if piece.started_s is None else piece.started_s
            piece.decoded += batch.frames
        self._decoding = [p for p in self._decoding if p.decoded < p.frames]
        self._packets.put_nowait(
            [_Packet(piece, batch.frames, piece.decoded == piece.frames) for piece in pieces]
        )

    async def _send(self) -> None:
        """The api process and the client take packets one by one."""
        while True:
            packets = await self._packets.get()
            each_s = await self._send_all(len(packets)) / len(packets)
            ended_s = self._clock()
            for number, packet in enumerate(packets, start=1):
                at_s = ended_s - (len(packets) - number) * each_s
                audio_s = packet.frames * self._system.frame_period_s
                self._record_arrival(packet, at_s, audio_s)

    def _record_arrival(self, packet: _Packet, at_s: float, audio_s: float) -> None:
        piece, request_id = packet.piece, str(id(packet.piece.caller))
        piece.caller.take(at_s, audio_s)
        if packet.final:
            self._playout_buffers.clear_waiting(request_id)
            piece.heard.set()
        elif piece.caller.place is not None:
            self._playout_buffers.mark_waiting(request_id, piece.caller.playout_deadline_s or at_s)
        self.admission.look_again()

    async def _send_all(self, packets: int) -> float:
        took_s = await self._processors.work(packets * self._system.packet_s)
        return took_s + await self._processors.work(packets * self._system.client_packet_s)

    def _measure(self, stage: int, frames: int, seconds: float) -> None:
        self._paces[stage].measure(frames, seconds, self._clock())
        self._resize()

    def _resize(self) -> None:
        system = self._system
        bounds = (None, system.max_batch_frames)
        stages = [
            StagePace(pace.cost, bound)
            for pace, bound in zip(self._paces, bounds, strict=True)
            if pace.cost is not None
        ]
        self._places = compute_places(stages, system.frame_period_s, system.slots)
        self.admission.resize(self._places)
