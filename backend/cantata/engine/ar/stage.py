"""The AR stage: requests in, frames out, one step of its engine at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.config import ArDeployment
from cantata.contract.data.chunks import Chunk, Codes, Payload, WordTiming
from cantata.contract.data.errors import (
    CantataError,
    InvalidRequest,
    Overloaded,
    ProtocolViolation,
    RequestFailed,
)
from cantata.contract.data.request import StageInput
from cantata.contract.model.pipeline import CODES
from cantata.contract.model.talker import OpenTalker, SamplingOptions, TalkerPrompt
from cantata.contract.process.messages import StageCapacity
from cantata.contract.process.stage import StepResult
from cantata.engine.ar.frames import Ending, FrameEngine, FrameRequest, NewFrame
from cantata.engine.ar.plugin_call import plugin_call
from cantata.engine.ar.request_state import ResolvedSampling
from cantata.engine.ar.row_supply import RowSupply

T = TypeVar("T")

_BATCH_PRIORITY = 1
_LIVE_PRIORITY = 0


@dataclass(slots=True)
class _Held:
    """One request of this stage."""

    prompt_len: int
    max_frames: int
    granted_frames: int
    """How many frames vLLM may make by now: all, or as many as there are rows for."""
    resumable: bool
    open: bool
    """More rows follow."""
    priority: int
    words: tuple[WordTiming, ...]
    """Not sent yet, like the next: the first chunk takes them along."""
    context: NDArray[np.int32] | None
    num_frames: int = 0
    """Chunks so far, one frame each."""


class ArStage:
    """Holds up to `slots` requests; each step gives one frame to each request that is prefilled.

    Implements `contract.process.stage.Stage`.
    """

    def __init__(self, engine: FrameEngine, deployment: ArDeployment) -> None:
        self._deployment = deployment
        self._engine = engine
        self._talker = engine.talker
        self._states = self._talker.talker_step.states
        self._supply = RowSupply(self._states)
        self._held: dict[str, _Held] = {}

    @property
    def capacity(self) -> StageCapacity:
        """Slots and frame period; this stage knows no samples."""
        return StageCapacity(
            slots=self._deployment.slots, frame_period_s=self._talker.frame_period_s
        )

    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        runs_dry_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        """Encode the prompt and queue the request; each step makes a frame for every request, so
        `runs_dry_s` and `stretch` have no effect here.

        Raises:
            ProtocolViolation: the id is in use.
            Overloaded: every slot is taken.
            InvalidRequest: the payload cannot be spoken, or does not fit into max_model_len.
            RequestFailed: the talker could not encode it.
        """
        if request_id in self._held:
            raise ProtocolViolation(f"request {request_id!r} is already held")
        if not self._states.num_free:
            raise Overloaded(f"all {self._deployment.slots} slots are taken")
        if payload is None:
            raise InvalidRequest("an AR stage needs an input to speak")
        prompt = self._make_state(request_id, payload)
        held = _Held(
            prompt_len=prompt.prompt_len,
            max_frames=prompt.max_frames,
            granted_frames=_frames_with_rows(prompt, len(prompt.rows)),
            resumable=prompt.open,
            open=prompt.open,
            priority=_BATCH_PRIORITY if batch else _LIVE_PRIORITY,
            words=prompt.words,
            context=None if prompt.context is None else prompt.context.cpu().numpy().astype("i4"),
        )
        self._engine.add(
            FrameRequest(
                request_id,
                prompt_len=prompt.prompt_len,
                max_frames=held.granted_frames,
                priority=held.priority,
                cache_salt=_salt_of(prompt) if self._deployment.prefix_caching else None,
                resumable=held.resumable,
            )
        )
        self._held[request_id] = held
        if prompt.later_rows is not None:
            self._supply.add(request_id, prompt.later_rows)

    @torch.inference_mode()
    def extend(self, request_id: str, payload: StageInput, *, final: bool) -> None:
        """Append rows to an open request's prompt; it resumes if it was waiting for them.

        Raises:
            ProtocolViolation: the request's prompt is not open.
            InvalidRequest: the text does not fit into max_model_len.
            RequestFailed: the talker could not encode it. In any case the request is freed.
        """
        held = self._held.get(request_id)
        if held is None:
            return  # it ended before its text did
        try:
            with plugin_call("more text could not be encoded"):
                self._append_rows(request_id, held, payload, final)
        except CantataError:
            self.abort(request_id)
            raise

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """This stage takes no chunks, only its requests' payloads."""

    def credit(self, request_id: str, samples: int) -> None:
        """This stage is never the last."""

    def abort(self, request_id: str) -> None:
        """Free the request at once; unknown ids are fine."""
        if request_id in self._held:
            self._engine.abort(request_id)
            self._free(request_id)

    def has_work(self) -> bool:
        """Whether there are requests."""
        return self._engine.has_work()

    def step(self) -> StepResult:
        """One engine step: the new frame of each request that has one."""
        chunks: list[Chunk[Codes]] = []
        failures = self._supply.top_up()
        for request_id, _ in failures:
            self.abort(request_id)
        for output in self._engine.step():
            request_id = output.request_id
            if output.ending is Ending.FAULT:
                error = RequestFailed("the engine ended the request")
                failures.append((request_id, error))
                self._free(request_id)
                continue
            chunk = self._chunk_of(output)
            chunks.append(chunk)
            if chunk.final:
                self._end(request_id)
        return StepResult(chunks, failures)

    def counts(self) -> Mapping[str, int]:
        """Slots here, and what vLLM holds."""
        return {"slots": len(self._states), **self._engine.counts()}

    def close(self) -> None:
        """End the engine."""
        self._engine.close()

    def _chunk_of(self, output: NewFrame) -> Chunk[Codes]:
        request_id, codes = output.request_id, output.codes
        held = self._held[request_id]
        index, held.num_frames = held.num_frames, held.num_frames + 1
        stopped = output.ending is Ending.END_CODE
        if stopped:
            codes = codes[:0]  # the end code's frame is not spoken
        final = stopped or held.num_frames == held.max_frames
        frames = Codes(codes, words=held.words)
        if held.context is not None:
            primed = np.concatenate([held.context, codes])
            frames = Codes(primed, unheard=len(held.context), words=held.words)
        held.words, held.context = (), None
        return Chunk(request_id, CODES, index, frames, final)

    def _append_rows(self, request_id: str, held: _Held, payload: StageInput, final: bool) -> None:
        if not held.open:
            raise ProtocolViolation(f"the text of request {request_id!r} is complete")
        rows = cast(OpenTalker, self._talker).encode_more(payload)
        slot_rows = self._states.last_row[self._states.slot_of(request_id)] + 1 + len(rows)
        if slot_rows > self._deployment.max_model_len:
            raise InvalidRequest(
                f"the text needs {slot_rows} positions, more than the "
                f"{self._deployment.max_model_len} of this deployment"
            )
        num_rows = self._states.extend(request_id, rows)
        held.open = not final
        may_make = held.max_frames
        if held.open:
            may_make = min(may_make, num_rows - held.prompt_len + 1)
        more, held.granted_frames = may_make - held.granted_frames, may_make
        if more:
            self._engine.add(
                FrameRequest(request_id, 1, more, priority=held.priority, resumable=True)
            )

    def _end(self, request_id: str) -> None:
        """Free a request that vLLM has ended, or still considers running."""
        if self._held[request_id].resumable:
            self._engine.abort(request_id)
        self._free(request_id)

    def _free(self, request_id: str) -> None:
        self._supply.forget(request_id)
        self._states.free(request_id)
        del self._held[request_id]

    @torch.inference_mode()
    def _make_state(self, request_id: str, payload: StageInput) -> TalkerPrompt:
        """Encode the payload into a slot; whatever fails, the slot is free again."""
        try:
            with plugin_call("the prompt could not be encoded"):
                prompt, options = self._talker.encode_prompt(payload)
                self._check(prompt)
                self._states.add(request_id, prompt, self._resolve(options))
        except CantataError:
            self._states.free(request_id)
            raise
        return prompt

    def _check(self, prompt: TalkerPrompt) -> None:
        """Raises InvalidRequest or RequestFailed if the prompt cannot be served."""
        if not 1 <= prompt.prompt_len <= len(prompt.rows) or prompt.max_frames < 1:
            raise RequestFailed(
                f"the talker's prompt has {prompt.prompt_len} positions, {len(prompt.rows)} rows "
                f"and {prompt.max_frames} frames"
            )
        positions = prompt.prompt_len + prompt.max_frames
        if positions > self._deployment.max_model_len:
            raise InvalidRequest(
                f"the text needs {positions} positions, more than the "
                f"{self._deployment.max_model_len} of this deployment"
            )

    def _resolve(self, options: SamplingOptions) -> ResolvedSampling:
        """Fill in the deployment's defaults where the request says nothing."""
        defaults = self._deployment.sampling
        temperature = _or_default(options.temperature, defaults.temperature)
        top_k = _or_default(options.top_k, defaults.top_k)
        top_p = _or_default(options.top_p, defaults.top_p)
        return ResolvedSampling(
            seed=options.seed,
            temperature=(temperature, _or_default(options.residual_temperature, temperature)),
            top_k=(top_k, _or_default(options.residual_top_k, top_k)),
            top_p=(top_p, _or_default(options.residual_top_p, top_p)),
            repetition_penalty=_or_default(options.repetition_penalty, defaults.repetition_penalty),
        )


def _or_default(value: T | None, default: T) -> T:
    return default if value is None else value


def _frames_with_rows(prompt: TalkerPrompt, num_rows: int) -> int:
    """How many frames this many rows allow: each frame but the first is fed back with one."""
    if not prompt.open:
        return prompt.max_frames
    return min(prompt.max_frames, num_rows - prompt.prompt_len + 1)


def _salt_of(prompt: TalkerPrompt) -> str:
    """A hash of what the prefilled positions hold.

    WHY: vLLM identifies a prompt by its token ids, and placeholders are all equal.
    """
    rows = prompt.rows[: prompt.prompt_len].to(dtype=torch.float32, device="cpu").contiguous()
    return hashlib.sha256(rows.numpy().tobytes()).hexdigest()
