"""The AR stage: requests in, frames out, one step of its engine at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from cantata.config import ArDeployment
from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.errors import (
    CantataError,
    Overloaded,
    ProtocolViolation,
    RequestFailed,
)
from cantata.contract.data.request import StageInput
from cantata.contract.model.embedding_source import EmbeddingSource, TalkerPrompt
from cantata.contract.process.messages import StageCapacity
from cantata.contract.process.stage import StepResult, Working
from cantata.stages.ar.chunking import Chunking, Sending
from cantata.stages.ar.frames import FrameEngine, FrameRequest, StopReason
from cantata.stages.ar.prompts import (
    build_salt,
    check_positions,
    check_prompt,
    frames_allowed,
    resolve_sampling,
)
from cantata.stages.ar.row_supply import RowSupply
from cantata.stages.common.plugin_call import guard_plugin_call

_BATCH_PRIORITY = 1
_LIVE_PRIORITY = 0


@dataclass(slots=True)
class _Waiting:
    """A request whose prompt is not there yet."""

    source: EmbeddingSource
    priority: int


@dataclass(slots=True)
class _Held:
    """A request that vLLM knows."""

    source: EmbeddingSource
    prompt_len: int
    max_frames: int
    granted_frames: int
    """How many frames vLLM may make by now: all, or as many as there are rows for."""
    resumable: bool
    """It began before all of its rows could be made."""
    priority: int
    sending: Sending


class ArStage:
    """Holds up to `slots` requests; each step gives one frame to each request that is prefilled.

    Implements `contract.process.stage.Stage`.
    """

    reuse = None
    """It keeps no results."""

    def __init__(
        self, engine: FrameEngine, deployment: ArDeployment, *, exports_rows: bool = False
    ) -> None:
        self._deployment = deployment
        self._engine = engine
        self._talker = engine.talker
        self._exports_rows = exports_rows
        self._chunking = Chunking(engine.talker, exports_rows=exports_rows)
        if exports_rows:
            engine.talker.talker_step.export()
        self._states = self._talker.talker_step.states
        self._supply = RowSupply(self._states)
        self._waiting: dict[str, _Waiting] = {}
        self._held: dict[str, _Held] = {}
        self._failures: list[tuple[str, CantataError]] = []
        """Found between steps."""
        self._silent: list[str] = []
        """Requests that have nothing to say, found between steps."""

    @property
    def capacity(self) -> StageCapacity:
        """Slots and frame period; this stage knows no samples."""
        return StageCapacity(
            slots=self._deployment.slots, frame_period_s=self._talker.frame_period_s
        )

    @torch.inference_mode()
    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        playout_deadline_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        """Open the request's source of rows, and queue the request once its prompt is there.

        Each step makes a frame for every request, so `playout_deadline_s` and `stretch` have no
        effect here.

        Raises:
            ProtocolViolation: the id is in use.
            Overloaded: every slot is taken.
            InvalidRequest: the payload cannot be spoken, or does not fit into max_model_len.
            RequestFailed: the talker could not encode it.
        """
        if request_id in self._held or request_id in self._waiting:
            raise ProtocolViolation(f"request {request_id!r} is already held")
        if self._states.num_free <= len(self._waiting):
            raise Overloaded(f"all {self._deployment.slots} slots are taken")
        with guard_plugin_call("the prompt could not be encoded"):
            source = self._talker.open(payload)
        priority = _BATCH_PRIORITY if batch else _LIVE_PRIORITY
        self._waiting[request_id] = _Waiting(source, priority)
        try:
            self._begin(request_id)
        except CantataError:
            self.abort(request_id)
            raise

    def extend(self, request_id: str, payload: StageInput, *, final: bool) -> None:
        """Pass later text on to its request; it resumes if it was waiting for that.

        Raises:
            ProtocolViolation: the request's text is complete.
            InvalidRequest: the text does not fit into max_model_len.
            RequestFailed: the talker could not encode it. In any case the request is freed.
        """
        self._feed(request_id, payload, final=final)

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Pass what comes on edges on to its requests; a fault fails its own request only."""
        for chunk in chunks:
            try:
                self._feed(chunk.request_id, chunk.payload, final=chunk.final)
            except CantataError as error:
                self._failures.append((chunk.request_id, error))

    def credit(self, request_id: str, samples: int) -> None:
        """This stage makes no sound."""

    def abort(self, request_id: str) -> None:
        """Free the request at once; unknown ids are fine."""
        self._waiting.pop(request_id, None)
        self._silent = [name for name in self._silent if name != request_id]
        if request_id in self._held:
            self._engine.abort(request_id)
            self._free(request_id)

    def has_work(self) -> bool:
        """Whether a frame can be made, or a failure reported."""
        return bool(self._failures or self._silent) or self._engine.has_work()

    def get_due_in_s(self) -> None:
        """None: only what arrives can make work."""

    def step(self) -> StepResult:
        """One engine step: the new frame of each request that has one."""
        ended: list[str] = []
        silent, self._silent = self._silent, []
        failures, self._failures = self._failures, []
        chunks = [chunk for request_id in silent for chunk in self._chunking.silence(request_id)]
        for request_id, error in self._supply.top_up():
            self.abort(request_id)
            failures.append((request_id, error))
        outputs = self._engine.step() if self._engine.has_work() else ()
        logprobs = self._talker.talker_step.take_logprobs()
        for output in outputs:
            request_id = output.request_id
            if output.ending is StopReason.FAULT:
                failures.append((request_id, RequestFailed("the engine ended the request")))
                self._free(request_id)
                continue
            scored = logprobs.get(self._states.get_slot(request_id))
            chunk = self._chunking.frame(self._held[request_id].sending, output, scored)
            chunks.append(chunk)
            if chunk.final:
                ended.append(request_id)
        if self._exports_rows:
            chunks += self._iterate_row_chunks(ended)
        for request_id in ended:
            self._end(request_id)
        return StepResult(chunks, failures)

    def get_counts(self) -> Mapping[str, int]:
        """Slots here, and what vLLM holds."""
        return {"slots": len(self._states) + len(self._waiting), **self._engine.get_counts()}

    def start_thread(self, working: Working) -> None:
        """None: the work is done inside `step`."""

    def close(self) -> None:
        """End the engine."""
        self._engine.close()

    def _iterate_row_chunks(self, ended: Sequence[str]) -> Iterator[Chunk[Payload]]:
        """The rows of the positions that this step has computed."""
        exported = self._talker.talker_step.take_exported()
        for request_id, held in self._held.items():
            rows = exported.get(self._states.get_slot(request_id))
            final = request_id in ended
            yield from self._chunking.rows(request_id, held.sending, rows, final=final)

    def _begin(self, request_id: str) -> None:
        """Queue a waiting request if its prompt is there. The caller frees it if that fails."""
        source, priority = self._waiting[request_id].source, self._waiting[request_id].priority
        try:
            with guard_plugin_call("the prompt could not be encoded"):
                prompt = source.prompt()
                if prompt is None and not source.open:
                    raise RequestFailed("the input ended before there was anything to begin with")
                if prompt is None:
                    return
                if not prompt.prompt_len:
                    del self._waiting[request_id]
                    self._silent.append(request_id)
                    return
                check_prompt(prompt, self._deployment.max_model_len)
                sampling = resolve_sampling(prompt.sampling, self._deployment.sampling)
                self._states.add(request_id, prompt, sampling)
        except CantataError:
            self._states.free(request_id)
            raise
        del self._waiting[request_id]
        held = self._held[request_id] = _Held(
            source=source,
            prompt_len=prompt.prompt_len,
            max_frames=prompt.max_frames,
            granted_frames=frames_allowed(
                len(prompt.rows), prompt.prompt_len, prompt.max_frames, open=source.open
            ),
            resumable=source.open,
            priority=priority,
            sending=self._chunking.begin(prompt),
        )
        self._engine.add(
            FrameRequest(
                request_id,
                prompt_len=prompt.prompt_len,
                max_frames=held.granted_frames,
                priority=held.priority,
                token_ids=None if prompt.token_ids is None else prompt.token_ids.tolist(),
                cache_salt=self._build_cache_salt(request_id, prompt),
                resumable=held.resumable,
                computes_all=held.sending.exports_rows,
            )
        )
        if source.open:
            self._append_rows(request_id, held)
        else:
            self._supply.add(request_id, source)

    @torch.inference_mode()
    def _feed(self, request_id: str, item: StageInput | Payload, *, final: bool) -> None:
        request = self._held.get(request_id) or self._waiting.get(request_id)
        if request is None:
            return  # it ended before its input did
        try:
            with guard_plugin_call("later input could not be encoded"):
                request.source.feed(item, final=final)
            if isinstance(request, _Held):
                self._append_rows(request_id, request)
            else:
                self._begin(request_id)
        except CantataError:
            self.abort(request_id)
            raise

    def _append_rows(self, request_id: str, held: _Held) -> None:
        """Take the rows that its source has now, and let vLLM make the frames that they allow."""
        with guard_plugin_call("later input could not be encoded"):
            while (rows := held.source.more()) is not None:
                needed = self._count_rows(request_id) + len(rows)
                check_positions(needed, self._deployment.max_model_len)
                self._states.extend(request_id, rows)
        allowed = frames_allowed(
            self._count_rows(request_id), held.prompt_len, held.max_frames, open=held.source.open
        )
        more, held.granted_frames = allowed - held.granted_frames, allowed
        if more:
            self._engine.add(
                FrameRequest(request_id, 1, more, priority=held.priority, resumable=True)
            )

    def _count_rows(self, request_id: str) -> int:
        return int(self._states.last_row[self._states.get_slot(request_id)]) + 1

    def _build_cache_salt(self, request_id: str, prompt: TalkerPrompt) -> str | None:
        if not self._deployment.prefix_caching or prompt.token_ids is not None:
            return None
        # WHY: block hashes include only code 0 of generated positions. With less memory than the
        # slots may need, a request that computes its own again must not find another's.
        return build_salt(prompt) if self._deployment.kv_positions is None else request_id

    def _end(self, request_id: str) -> None:
        """Free a request that vLLM has ended, or still considers running."""
        if self._held[request_id].resumable:
            self._engine.abort(request_id)
        self._free(request_id)

    def _free(self, request_id: str) -> None:
        self._supply.forget(request_id)
        self._states.free(request_id)
        del self._held[request_id]
