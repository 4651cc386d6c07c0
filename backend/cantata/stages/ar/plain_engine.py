"""An engine without vLLM: one listener's requests, each computed by itself.

The step around the model (`talker_step`, `request_state`, `row_supply`) is the served one; only the
scheduler and the layers replace vLLM's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch

from cantata.config import ArDeployment
from cantata.contract.model.plain_talker import AttentionMemory, PlainTalker
from cantata.stages.ar.frames import FrameRequest, NewFrame, StopReason
from cantata.stages.ar.request_state import RequestStates
from cantata.stages.ar.talker_step import ServedTalker, TalkerStep, get_layout, pad_rows


@dataclass(slots=True)
class _Running:
    memory: AttentionMemory
    prompt_len: int
    max_frames: int
    num_frames: int = 0


class PlainEngine:
    """Implements `FrameEngine` for a `PlainTalker` and whole texts."""

    def __init__(self, talker: PlainTalker, deployment: ArDeployment) -> None:
        states = RequestStates(
            slots=deployment.slots,
            max_model_len=deployment.max_model_len,
            layout=get_layout(talker),
            hidden_size=talker.hidden_size,
            dtype=torch.float32,
            device=torch.device("cpu"),
        )
        self._plain = talker
        self._step = TalkerStep(cast(ServedTalker, talker), states)
        self._positions = deployment.max_model_len
        self._running: dict[str, _Running] = {}
        self.talker = cast(ServedTalker, talker)
        """The loaded model."""
        self.talker.talker_step = self._step

    def add(self, request: FrameRequest) -> None:
        """Add a request, as `FrameEngine.add`, without priorities."""
        assert not request.resumable, "a text that is still arriving needs a server"
        memory = self._plain.attention(self._positions)
        run = _Running(memory, request.prompt_len, request.max_frames)
        self._running[request.request_id] = run

    def abort(self, request_id: str) -> None:
        """Forget a request; unknown ids are fine."""
        self._running.pop(request_id, None)

    def has_work(self) -> bool:
        """Whether there are requests."""
        return bool(self._running)

    @torch.inference_mode()
    def step(self) -> Sequence[NewFrame]:
        """A frame of every request."""
        return [self._advance(request_id) for request_id in list(self._running)]

    def get_counts(self) -> dict[str, int]:
        """What is held now; all zero when idle."""
        return {"requests": len(self._running)}

    def close(self) -> None:
        """Nothing to free."""

    def _advance(self, request_id: str) -> NewFrame:
        run, talker = self._running[request_id], self._plain
        first = run.prompt_len - 1 + run.num_frames if run.num_frames else 0
        count = 1 if run.num_frames else run.prompt_len
        slot = self._step.states.get_slot(request_id)
        self._step.schedule([slot], np.array([first]), np.array([count]))
        run.memory.advance(count)
        positions = torch.arange(first, first + count)
        hidden = talker.forward_rows(self._step.input_rows(), positions, run.memory)
        talker.sampled_hidden = pad_rows(hidden[-1:], talker.min_rows)
        tokens, frames = self._step.sample(talker.compute_logits(talker.sampled_hidden)[:1])
        run.num_frames += 1
        values = frames.numpy().astype(np.float32 if frames.is_floating_point() else np.int32)
        ending: StopReason | None = None
        if talker.end_code is not None and tokens[0] == talker.end_code:
            ending = StopReason.END_CODE
        elif run.num_frames == run.max_frames:
            ending = StopReason.LENGTH
        if ending is not None:
            del self._running[request_id]
        return NewFrame(request_id, values, ending)
