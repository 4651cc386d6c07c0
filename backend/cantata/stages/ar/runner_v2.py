"""vLLM's second model runner, its default on CUDA: stock but for the hooks it offers.

The model names its `ModelState` class; that prepares the inputs and wraps the sampler. The stage
owns the requests' states, so the hooks for added, preempted and removed requests stay unused.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.v1.worker.gpu.input_batch import InputBatch, get_num_sampled_and_rejected
from vllm.v1.worker.gpu.model_states.default import DefaultModelState
from vllm.v1.worker.gpu.sample.output import SamplerOutput
from vllm.v1.worker.gpu.sample.sampler import Sampler
from vllm.v1.worker.gpu.states import RequestState

from cantata.stages.ar.frame_output import pack_frames
from cantata.stages.ar.talker_step import TalkerStep


class TalkerModelState(DefaultModelState):  # type: ignore[misc]
    """Feeds rows of the talker step to the model and replaces the sampler."""

    def __init__(
        self, vllm_config: VllmConfig, model: nn.Module, encoder_cache: Any, device: torch.device
    ) -> None:
        super().__init__(vllm_config, model, encoder_cache, device)
        # WHY static buffers: a captured graph is replayed without inputs and reads what was
        # at these addresses when it was captured. vLLM captures with what `prepare_dummy_inputs`
        # returns, and before each replay calls `prepare_inputs`, of which it uses nothing then:
        # both must return the first positions of the same memory. Positions that pad a step hold
        # what an earlier step left there; vLLM gives them no keys and reads no result of theirs.
        step: TalkerStep = model.talker_step  # type: ignore[assignment]
        states = step.states
        self._input_rows = states.rows.new_zeros(self.max_num_tokens, states.rows.shape[2])
        self._positions = states.positions.new_zeros(states.positions.shape[2], self.max_num_tokens)
        self._scheduled: InputBatch | None = None

    def prepare_inputs(self, input_batch: InputBatch, req_states: RequestState) -> dict[str, Any]:
        """Model inputs of this step: input rows in place of token ids."""
        self.schedule(input_batch)
        step = self.model.talker_step
        rows, positions = step.input_rows(), step.rotary_positions()
        # On the stream of the replay, which is ordered after it.
        self._input_rows[: rows.shape[0]] = rows
        if positions is not None:
            self._positions[:, : rows.shape[0]] = positions
        return {
            **super().prepare_inputs(input_batch, req_states),
            **self._list_static_inputs(input_batch.num_tokens_after_padding),
        }

    def prepare_dummy_inputs(self, num_reqs: int, num_tokens: int) -> dict[str, Any]:
        """Model inputs for profiling and capture."""
        return {
            **super().prepare_dummy_inputs(num_reqs, num_tokens),
            **self._list_static_inputs(num_tokens),
        }

    def _list_static_inputs(self, count: int) -> dict[str, Any]:
        """The inputs of the first `count` positions of the step."""
        inputs: dict[str, Any] = {"input_ids": None, "inputs_embeds": self._input_rows[:count]}
        if len(self._positions):
            inputs["positions"] = self._positions[:, :count]
        return inputs

    def custom_sampler(self, sampler: Sampler) -> tuple[Sampler, None]:
        """Draw frames instead of tokens."""
        return FrameSampler(sampler, self), None

    def sample(self, logits: torch.Tensor, batch: InputBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """As `TalkerStep.sample`."""
        if batch is not self._scheduled:
            # Profiling samples a batch of its own, after another forward.
            self.schedule(batch)
        step: TalkerStep = self.model.talker_step
        return step.sample(logits)

    def schedule(self, batch: InputBatch) -> None:
        """Tell the talker step which positions this batch computes."""
        step: TalkerStep = self.model.talker_step
        # Warm-up batches contain requests that were never added.
        slots = [step.states.slot_or_scratch(request_id) for request_id in batch.req_ids]
        step.schedule(slots, batch.num_computed_tokens_np, batch.num_scheduled_tokens)
        self._scheduled = batch


class FrameSampler(Sampler):  # type: ignore[misc]
    """vLLM's sampler with the talker step's choice of codes."""

    def __init__(self, stock: Sampler, state: TalkerModelState) -> None:
        # WHY: the runner also reads what the stock sampler keeps per request (penalties,
        # temperatures), so this one takes over its state instead of building it again.
        self.__dict__.update(stock.__dict__)
        self._state = state

    def __call__(self, logits: torch.Tensor, input_batch: InputBatch) -> SamplerOutput:
        """[R, V] scores -> one frame per request."""
        tokens, frames = self._state.sample(logits, input_batch)
        num_sampled, num_rejected = get_num_sampled_and_rejected(
            input_batch.seq_lens.new_ones(input_batch.num_reqs),
            input_batch.seq_lens,
            input_batch.cu_num_logits,
            input_batch.idx_mapping,
            self.req_states.prefill_len.gpu,
        )
        return SamplerOutput(
            sampled_token_ids=tokens[:, None],
            logprobs_tensors=pack_frames(frames),
            num_nans=None,
            num_sampled=num_sampled,
            num_rejected=num_rejected,
        )
