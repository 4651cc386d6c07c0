"""An engine without vLLM: a step of all requests is one function, on CUDA one graph.

The host prepares a small tensor of indices and uploads it; the device does all else. On a GPU the
frames of a step are handed on while the device computes the next one. On a CPU nothing is recorded
and nothing is padded, and a step's frames are there when it returns.

Letters: B requests of a batch, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.config import ArDeployment, SamplingDefaults
from cantata.contract.data.errors import ConfigError, RequestFailed
from cantata.contract.model.plain_talker import PlainTalker
from cantata.contract.model.upload import upload_together
from cantata.stages.ar.frames import FrameRequest, NewFrame, StopReason
from cantata.stages.ar.lane_memory import LaneMemory
from cantata.stages.ar.lanes import LaneRequest, Lanes
from cantata.stages.ar.request_state import RequestStates
from cantata.stages.ar.slot_steps import SlotSteps, StepKind
from cantata.stages.ar.step_graphs import StepGraphs, StepShapes
from cantata.stages.ar.step_plans import StepPlan, StepPlanner
from cantata.stages.ar.talker_step import ServedTalker, TalkerStep, get_layout
from cantata.stages.common.device import Download

_UNSUPPORTED = (
    *("latent_size", "row_width", "rotary_axes", "export_width", "decides_stop", "law_draws"),
    *("usual_steps", "num_frame_options"),
)
"""Attributes of `Talker` that only vLLM's engine heeds."""


@dataclass(frozen=True, slots=True)
class _Launched:
    """A batch that the device computes, or has computed."""

    plan: StepPlan
    frames: Download
    """[B, Q] int32."""


class GraphEngine:
    """Implements `FrameEngine` for a `PlainTalker`.

    Args:
        talker: loaded.
        deployment: how it is served; no more positions than the talker has.
        device: where the talker is.
        shapes: what batches are padded to. None: nothing is padded.

    Raises:
        ConfigError: a talker that it cannot run.
    """

    def __init__(
        self,
        talker: PlainTalker,
        deployment: ArDeployment,
        device: torch.device,
        shapes: StepShapes | None = None,
    ) -> None:
        check_talker(talker)
        self._device, self._shapes = device, shapes
        self._states, memory = allocate(talker, deployment, device, deployment.slots)
        self.talker = cast(ServedTalker, talker)
        """The loaded model."""
        self.talker.talker_step = TalkerStep(self.talker, self._states)
        self._lanes = Lanes(memory.move)
        self._planner = StepPlanner(self._states, shapes)
        self._graphs = StepGraphs(SlotSteps(talker, self._states, memory), device)
        self._most_positions = deployment.max_num_batched_tokens
        self._is_ahead = device.type != "cpu"
        """Whether a step returns while the device computes the next one."""
        self._launched: list[_Launched] = []

    def record(self, defaults: SamplingDefaults) -> None:
        """Capture the steps; `defaults` are of requests that set nothing."""
        assert self._shapes is not None, "graphs are for batches of few sizes"
        sampled, penalized = defaults.temperature > 0, defaults.repetition_penalty != 1.0
        usual = StepKind(sampled, sampled, penalized, penalizes_others=False)
        self._graphs.record(self._shapes, usual, self._states.scratch_slot)

    def add(self, request: FrameRequest) -> None:
        """Queue a request, or let a resumable one make more frames.

        Raises:
            RequestFailed: it wants of its codes what only the other engine does.
        """
        run = self._lanes.find(request.request_id)
        if run is not None:
            run.frames_left += request.max_frames
            run.resumable = request.resumable
            return
        slot = self._states.get_slot(request.request_id)
        self._check_slot(slot)
        run = LaneRequest(
            request.request_id,
            slot,
            prompt_len=request.prompt_len,
            frames_left=request.max_frames,
            resumable=request.resumable,
            priority=request.priority,
        )
        self._lanes.add(run)

    def abort(self, request_id: str) -> None:
        """Forget a request; unknown ids are fine."""
        run = self._lanes.find(request_id)
        if run is not None:
            self._lanes.remove(run)

    def has_work(self) -> bool:
        """Whether a frame can be made, or has been and was not returned."""
        return bool(self._launched) or self._lanes.has_work()

    @torch.inference_mode()
    def step(self) -> Sequence[NewFrame]:
        """A frame of every request that may make one. On a GPU the next ones are begun, too: the
        device computes them while these are sent."""
        if not self._launched:
            self._launch()
        frames = self._collect()
        if self._is_ahead:
            self._launch()
        return frames

    def get_counts(self) -> dict[str, int]:
        """What is held now; all zero when idle."""
        return {"requests": len(self._lanes), "lanes": len(self._lanes.used)}

    def close(self) -> None:
        """Nothing to free."""

    def _launch(self) -> None:
        """Begin waiting prompts, then a position of each request that had a lane before."""
        running = self._planner.plan_decode(self._lanes.used)
        if running is not None:
            made = np.array([(run.slot, run.frame) for run in running.runs])
            self._states.draw_ahead(*made.T)
        plans = list(self._plan_prompts()) + ([] if running is None else [running])
        on_host = [torch.from_numpy(plan.indices) for plan in plans]
        for plan, indices in zip(plans, upload_together(on_host, self._device), strict=True):
            call = self._graphs.prefill if plan.is_prompt else self._graphs.decode
            frames = call(plan.kind, plan.size, indices)
            self._launched.append(_Launched(plan, Download(frames)))
            for run in plan.runs:
                run.position = run.prompt_len if plan.is_prompt else run.position + 1
                run.frames_left -= 1
                self._states.num_frames[run.slot] += 1

    def _plan_prompts(self) -> list[StepPlan]:
        waiting = self._lanes.list_waiting()
        plans = []
        for runs in list(self._planner.group_prompts(waiting, self._most_positions)):
            for run in runs:
                self._lanes.begin(run)
            plans.append(self._planner.plan_prompts(runs))
        return plans

    def _collect(self) -> list[NewFrame]:
        """Wait for what was launched; requests that have ended give their lanes back."""
        launched, self._launched = self._launched, []
        made: list[NewFrame] = []
        for batch in launched:
            frames = batch.frames.wait().numpy()
            for run, column in zip(batch.plan.runs, batch.plan.columns, strict=True):
                if run.is_held:
                    made.append(self._take_frame(run, frames[[column]]))
        return made

    def _take_frame(self, run: LaneRequest, frame: NDArray[np.int32]) -> NewFrame:
        ending: StopReason | None = None
        if self.talker.end_code is not None and frame[0, 0] == self.talker.end_code:
            ending = StopReason.END_CODE
        elif not (run.frames_left or run.resumable):
            ending = StopReason.LENGTH
        if ending is not None:
            self._lanes.remove(run)
        return NewFrame(run.request_id, frame, ending)

    def _check_slot(self, slot: int) -> None:
        states = self._states
        wanted = {
            "a guide": slot in states.guides,
            "a bias": slot in states.code_bias,
            "log probabilities": bool(states.has_logprobs[slot]),
        }
        named = " and ".join(what for what, is_wanted in wanted.items() if is_wanted)
        if named:
            raise RequestFailed(f"codes with {named}: 'engine: vllm' has them, 'graphs' has not")


def check_talker(talker: PlainTalker) -> None:
    """Raises ConfigError unless this engine runs such a talker."""
    found = [name for name in _UNSUPPORTED if getattr(talker, name) not in (0, None, ())]
    if found:
        raise ConfigError(f"engine 'graphs' runs no talker with {' and '.join(found)}")


def allocate(
    talker: PlainTalker, deployment: ArDeployment, device: torch.device, slots: int
) -> tuple[RequestStates, LaneMemory]:
    """What requests hold in this many slots, and in one more with its lane, which are nobody's."""
    positions = deployment.max_model_len
    states = RequestStates(
        slots=slots,
        max_model_len=positions,
        layout=get_layout(talker),
        hidden_size=talker.hidden_size,
        dtype=getattr(torch, deployment.dtype),
        device=device,
    )
    with device:
        return states, cast(LaneMemory, talker.attention(slots + 1, positions))
