"""The codec stage: per-request streaming decoder state in slots, batches chosen by `plan`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.config import CodecDeployment
from cantata.contract.data.chunks import Chunk, Payload, Pcm, WordTiming
from cantata.contract.data.errors import CantataError, ConfigError, RequestFailed
from cantata.contract.data.request import StageInput
from cantata.contract.model.codec import (
    BlockDecoder,
    StreamingDecoder,
)
from cantata.contract.model.factory import resolve
from cantata.contract.model.pipeline import PCM, StageSpec
from cantata.contract.model.upload import upload
from cantata.contract.process.messages import StageCapacity, StepCost
from cantata.contract.process.stage import StepResult, Working
from cantata.scheduling.codec_plan import (
    DecodeBatch,
    PlanLimits,
    StreamView,
    find_due_s,
    plan,
)
from cantata.scheduling.playout_buffers import JitterEstimator
from cantata.scheduling.step_time_model import StepTimeModel
from cantata.stages.codec.decoding import (
    SPARE_SLOTS,
    Decoded,
    Frames,
    Queued,
    choose_decoding,
    count_spare_slots,
    explain_mismatch,
    recorded,
)
from cantata.stages.codec.windowed import WindowedDecoder
from cantata.stages.common.device import allow_tf32, check_room
from cantata.stages.common.plugin_call import guard_plugin_call

CPU = torch.device("cpu")


def build_stage(spec: StageSpec, checkpoint: Path, deployment: CodecDeployment) -> CodecStage:
    """Load a plug-in's decoder (`factory(checkpoint, device)`) and put a stage around it.

    Raises:
        ConfigError: the checkpoint lacks it, its state does not fit into memory, or it cannot be
            run in windows.
    """
    device = torch.device(deployment.device)
    if device.type == "cuda":
        allow_tf32(deployment.precision == "tf32")
    decoder = load_decoder(spec, checkpoint, device)
    slot_bytes = decoder.slot_bytes
    spare = count_spare_slots(decoder, deployment)
    check_room(spec.name, slot_bytes, deployment.slots, device, spare)
    if deployment.window is not None:
        window = deployment.window
        if isinstance(decoder, BlockDecoder):
            where = f"stage {spec.name!r}"
            raise ConfigError(f"{where}: its decoder has blocks of its own; window: null")
        if decoder.latent_size:
            raise ConfigError(f"stage {spec.name!r}: only decoders of codes run in windows")
        decoder = WindowedDecoder(decoder, window.chunk_frames, window.context_frames)
    return CodecStage(
        decoder,
        deployment,
        state_bytes=slot_bytes * (deployment.slots + spare),
        # In windows, positions are read on the host.
        device=device if deployment.window is None else CPU,
        is_recorded=bool(spare),
    )


def load_decoder(
    spec: StageSpec, checkpoint: Path, device: torch.device
) -> StreamingDecoder | BlockDecoder:
    """What a codec stage's factory makes.

    Raises:
        ConfigError: no such factory, or the checkpoint lacks the decoder.
    """
    load: Callable[[Path, torch.device], StreamingDecoder | BlockDecoder] = resolve(spec.factory)
    return load(checkpoint, device)


@dataclass(slots=True)
class _SlotStream:
    """One request's place in the stage."""

    slot: int
    credit_samples: int
    """How much sound the listener has credit for."""
    batch: bool
    stretch: float
    """Seconds of the model's sound that the listener plays in one second."""
    frames: list[NDArray[Any]] = field(default_factory=list)
    """Not decoded yet: [Q] codes or [E] latents each."""
    context_frames_left: int = 0
    """The first of them only prime the decoder: their sound is dropped."""
    leading_silence: int = 0
    """Samples that the decoder makes before its sound begins and that are still to be dropped."""
    words: list[WordTiming] = field(default_factory=list)
    """Not sent yet: the next PCM takes them along."""
    received_chunks: int = 0
    sent_chunks: int = 0
    sent_samples: int = 0
    complete: bool = False
    """The last frame has arrived."""
    delivery: int = 0
    """Number of the latest delivery that had frames of it."""
    started_s: float | None = None
    """When the listener started to play its first samples, or will, after what it plays now."""


class CodecStage:
    """Implements `contract.process.stage.Stage` over a decoder.

    Args:
        clock: seconds, monotonic; the plan's deadlines are on it.
        state_bytes: of all slots, if the decoder knows.
        device: where the decoder takes its inputs.
        is_recorded: whether the steps of a recordable decoder are recorded there, not called.
    """

    reuse = None
    """It keeps no results."""

    def __init__(
        self,
        decoder: StreamingDecoder | BlockDecoder,
        deployment: CodecDeployment,
        clock: Callable[[], float] = time.monotonic,
        *,
        state_bytes: int = 0,
        device: torch.device = CPU,
        is_recorded: bool = False,
    ) -> None:
        self._decoder, self._device = decoder, device
        self._leading_silence = decoder.leading_silence
        if not is_recorded:
            self._decoding = choose_decoding(decoder, device)
            self._state = decoder.init_state(deployment.slots)
        else:
            assert not isinstance(decoder, BlockDecoder), "only steps over frames are recorded"
            self._state = decoder.init_state(deployment.slots + SPARE_SLOTS)
            self._decoding = recorded(decoder, self._state, deployment, device)
        unit_frames = self._decoding.unit_frames
        # The plan counts units: it knows no shorter piece of sound.
        self._limits = PlanLimits(
            max_chunk_frames=max(1, deployment.max_chunk_frames // unit_frames),
            max_batch_frames=max(1, deployment.max_batch_frames // unit_frames),
            frame_period_s=unit_frames * decoder.samples_per_frame / decoder.sample_rate,
        )
        self._credit_samples = int(deployment.credit_s * decoder.sample_rate)
        self._clock = clock
        self._free_slots = list(reversed(range(deployment.slots)))
        self._streams: dict[str, _SlotStream] = {}
        self._jitter = JitterEstimator(self._limits.frame_period_s)
        # On a CPU a step's time grows with its frames: nothing is saved by waiting for more.
        gathers = deployment.on_gpu and unit_frames == 1
        self._step_times = StepTimeModel() if gathers else None
        self._failures: list[tuple[str, CantataError]] = []
        self._capacity = StageCapacity(
            slots=deployment.slots,
            frame_period_s=decoder.samples_per_frame / decoder.sample_rate,
            sample_rate=decoder.sample_rate,
            channels=decoder.channels,
            max_batch_frames=deployment.max_batch_frames,
            credit_samples=self._credit_samples,
            state_bytes=state_bytes,
        )

    @property
    def capacity(self) -> StageCapacity:
        """Slots, frame period and PCM format."""
        return self._capacity

    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        playout_deadline_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        """Take a slot.

        Raises:
            RequestFailed: every slot is in use, or the decoder cannot be prepared.
            CantataError: the decoder cannot decode this request.
        """
        if not self._free_slots:
            raise RequestFailed("the codec has no free slot")
        slot = self._free_slots[-1]
        self._decoder.reset(self._state, upload(torch.tensor([slot]), self._device))
        with guard_plugin_call("the decoder could not be prepared"):
            self._decoder.condition(self._state, slot, payload)
        self._free_slots.pop()
        self._streams[request_id] = _SlotStream(
            slot,
            self._credit_samples,
            batch,
            stretch,
            leading_silence=self._leading_silence,
            started_s=playout_deadline_s,
        )

    def extend(self, request_id: str, payload: StageInput, *, final: bool) -> None:
        """Requests are added to this stage complete."""

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Queue frames for decoding; a malformed chunk fails its own request only."""
        live = [stream for stream in self._streams.values() if not stream.batch]
        beginning = sum(stream.started_s is None for stream in live)
        self._jitter.record_delivery(self._clock(), beginning=beginning, listeners=len(live))
        for chunk in chunks:
            stream = self._streams.get(chunk.request_id)
            if stream is None:
                continue  # aborted while the chunk was on its way
            problem, frames = self._find_problem(chunk, stream), chunk.payload
            if problem is not None or not isinstance(frames, Frames):
                self._free(chunk.request_id)
                self._failures.append((chunk.request_id, RequestFailed(f"codec: {problem}")))
                continue
            stream.received_chunks += 1
            stream.delivery = self._jitter.deliveries
            stream.context_frames_left += frames.context_frames
            stream.frames.extend(frames.values)
            stream.words.extend(frames.words)
            stream.complete = chunk.final

    def credit(self, request_id: str, samples: int) -> None:
        """The listener took `samples`."""
        stream = self._streams.get(request_id)
        if stream is not None:
            stream.credit_samples += samples

    def abort(self, request_id: str) -> None:
        """Give the slot back."""
        self._free(request_id)

    def has_work(self) -> bool:
        """Whether frames are to be decoded now, or an end or a failure reported."""
        streams = self._streams.values()
        if self._failures or any(s.complete and not s.frames for s in streams):
            return True
        if self._cost is None:
            return any(self._count_ready_units(s) for s in streams)
        return self._find_due_s(self._cost) <= self._clock()

    def get_due_in_s(self) -> float | None:
        """Seconds until first packets that are held leave, and frames that wait for more are
        decoded, at the latest."""
        due_s = math.inf
        if any(self._is_held(stream) for stream in self._streams.values()):
            due_s = self._jitter.paused_s
        if self._cost is not None and (decoded_s := self._find_due_s(self._cost)) < math.inf:
            due_s = min(due_s, decoded_s, self._jitter.paused_s)
        return None if due_s == math.inf else max(0.0, due_s - self._clock())

    def step(self) -> StepResult:
        """Decode one batch."""
        failures, self._failures = self._failures, []
        chunks = self._announce_ends()
        views = [self._build_view(stream) for stream in self._streams.values()]
        began_s = self._clock()
        batch = plan(views, self._limits, began_s, self._cost)
        if batch is not None:
            chunks.extend(self._decode(batch))
            self._record_batch(batch, began_s)
        return StepResult(chunks, failures)

    def _record_batch(self, batch: DecodeBatch, began_s: float) -> None:
        ended_s = self._clock()
        self._jitter.record_batch(ended_s - began_s)
        if self._step_times is not None:
            self._step_times.measure(batch.frames * len(batch.slots), ended_s - began_s, ended_s)

    @property
    def _cost(self) -> StepCost | None:
        """Of its steps, where streams may wait for more frames to share one."""
        return None if self._step_times is None else self._step_times.cost

    def _find_due_s(self, cost: StepCost) -> float:
        views = [self._build_view(stream) for stream in self._streams.values()]
        return find_due_s(views, self._limits, cost)

    def get_counts(self) -> Mapping[str, int]:
        """Requests and undecoded frames held."""
        return {
            "requests": len(self._streams),
            "queued_frames": sum(len(s.frames) for s in self._streams.values()),
        }

    def start_thread(self, working: Working) -> None:
        """None: the work is done inside `step`."""

    def close(self) -> None:
        """Nothing outlives the process."""

    def _find_problem(self, chunk: Chunk[Payload], stream: _SlotStream) -> str | None:
        frames = chunk.payload
        problem = explain_mismatch(frames, self._decoder)
        if problem is not None or not isinstance(frames, Frames):
            return problem
        if chunk.index != stream.received_chunks or stream.complete:
            return f"expected chunk {stream.received_chunks}, got {chunk.index}"
        in_blocks = self._decoding.unit_frames > 1
        max_context_frames = 0 if stream.received_chunks or in_blocks else len(frames.values)
        if not 0 <= frames.context_frames <= max_context_frames:
            return (
                f"expected at most {max_context_frames} context frames, got {frames.context_frames}"
            )
        return None

    def _is_held(self, stream: _SlotStream) -> bool:
        """Whether its first frames are held for the next one, because later ones may come late.

        Not if it was passed over when others received frames: its text may be late, for an
        unknown time. Nor if nothing is delivered any more: all their texts may be. Nor in blocks:
        one is reserve enough.
        """
        if self._decoding.unit_frames > 1:
            return False
        if stream.started_s is not None or stream.batch or not self._is_delivered_to(stream):
            return False
        others = (other for other in self._streams.values() if other is not stream)
        return self._jitter.should_hold_first_packet(
            len(stream.frames) - stream.context_frames_left,
            complete=stream.complete,
            stretch=stream.stretch,
            others_speak=any(not other.complete for other in others),
        )

    def _is_delivered_to(self, stream: _SlotStream) -> bool:
        """Whether frames come, and the latest delivery had some of it."""
        given = stream.delivery == self._jitter.deliveries
        return given and self._clock() < self._jitter.paused_s

    def _count_ready_units(self, stream: _SlotStream) -> int:
        if self._is_held(stream):
            return 0
        affordable = stream.credit_samples // self._decoder.samples_per_frame
        # Rounded up: a unit may be more than the listener can ever have credit for.
        units = -(-affordable // self._decoding.unit_frames)
        ready = self._decoding.ready_units(_get_queued(stream))
        return max(0, min(ready, stream.context_frames_left + units))

    def _build_view(self, stream: _SlotStream) -> StreamView:
        deadline_s = math.inf
        if stream.started_s is not None and not stream.batch:
            heard_per_s = self._decoder.sample_rate * stream.stretch
            deadline_s = stream.started_s + stream.sent_samples / heard_per_s
        started = stream.batch or stream.started_s is not None
        return StreamView(
            stream.slot,
            self._count_ready_units(stream),
            started,
            deadline_s,
            stream.context_frames_left,
            self._jitter.reserve_frames(stream.stretch),
            self._cost is not None and not stream.complete and self._is_delivered_to(stream),
        )

    @torch.inference_mode()
    def _decode(self, batch: DecodeBatch) -> list[Chunk[Pcm]]:
        by_slot = {s.slot: (request_id, s) for request_id, s in self._streams.items()}
        rows = [by_slot[slot] for slot in batch.slots]
        queued = [_get_queued(stream) for _, stream in rows]
        decoded = self._decoding.decode(self._state, queued, batch.frames)
        emitted = [
            self._emit(request_id, stream, output)
            for (request_id, stream), output in zip(rows, decoded, strict=True)
        ]
        return [chunk for chunk in emitted if chunk is not None]

    def _emit(self, request_id: str, stream: _SlotStream, decoded: Decoded) -> Chunk[Pcm] | None:
        """The new sound of a stream; None while nothing of it is heard."""
        del stream.frames[: decoded.frames]
        context_frames = min(decoded.frames, stream.context_frames_left)
        stream.context_frames_left -= context_frames
        samples = decoded.samples[context_frames * self._decoder.samples_per_frame :]
        silent = min(len(samples), stream.leading_silence)
        stream.leading_silence -= silent
        samples = samples[silent:]
        final = stream.complete and not stream.frames
        if not len(samples) and not final:
            return None
        if stream.started_s is None:
            stream.started_s = self._clock()
        stream.sent_samples += len(samples)
        stream.credit_samples -= len(samples)
        sound = Pcm(samples, tuple(stream.words))
        chunk = Chunk(request_id, PCM, stream.sent_chunks, sound, final)
        stream.words.clear()
        stream.sent_chunks += 1
        if final:
            self._free(request_id)
        return chunk

    def _announce_ends(self) -> list[Chunk[Pcm]]:
        """Requests whose end came after their last frame was decoded."""
        ended = [(i, s) for i, s in self._streams.items() if s.complete and not s.frames]
        for request_id, _ in ended:
            self._free(request_id)
        nothing = np.zeros((0, self._decoder.channels), np.float32)
        return [
            Chunk(request_id, PCM, s.sent_chunks, Pcm(nothing, tuple(s.words)), True)
            for request_id, s in ended
        ]

    def _free(self, request_id: str) -> None:
        stream = self._streams.pop(request_id, None)
        if stream is not None:
            self._free_slots.append(stream.slot)


def _get_queued(stream: _SlotStream) -> Queued:
    return Queued(stream.slot, stream.frames, stream.complete)
