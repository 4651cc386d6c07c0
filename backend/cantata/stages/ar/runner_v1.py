"""vLLM's first model runner, which its CPU worker uses: frames instead of tokens.

The runner has no hook for these, so its class is replaced with a subclass right after construction.
SCOPE: CPU. Remove when vLLM's CPU worker runs the second runner without Triton.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.outputs import SamplerOutput
from vllm.v1.spec_decode.metadata import SpecDecodeMetadata
from vllm.v1.worker.cpu_model_runner import CPUModelRunner
from vllm.v1.worker.cpu_worker import CPUWorker

from cantata.stages.ar.frame_output import pack_frames
from cantata.stages.ar.talker_step import ServedTalker, pad_rows


class TalkerCpuRunner(CPUModelRunner):  # type: ignore[misc]
    """Feeds rows of the talker step to the model and returns its frames."""

    def _determine_batch_execution_and_padding(
        self, num_tokens: int, *args: Any, **kwargs: Any
    ) -> tuple[Any, ...]:
        mode, descriptor, *rest = super()._determine_batch_execution_and_padding(
            num_tokens, *args, **kwargs
        )
        # See `Talker.min_rows`; vLLM keeps such rows out of the KV cache, as for its graphs.
        padded = max(descriptor.num_tokens, self._find_talker().min_rows)
        return mode, replace(descriptor, num_tokens=padded), *rest

    def _preprocess(
        self,
        scheduler_output: SchedulerOutput,
        num_input_tokens: int,
        intermediate_tensors: Any = None,
    ) -> tuple[Any, ...]:
        _, _, positions, *rest = super()._preprocess(
            scheduler_output, num_input_tokens, intermediate_tensors
        )
        batch, talker = self.input_batch, self._find_talker()
        step = talker.talker_step
        request_ids = batch.req_ids
        step.schedule(
            [step.states.get_slot(request_id) for request_id in request_ids],
            batch.num_computed_tokens_cpu[: batch.num_reqs],
            np.array([scheduler_output.num_scheduled_tokens[r] for r in request_ids]),
        )
        axes = step.rotary_positions()
        if axes is not None:
            positions = pad_rows(axes.T, talker.min_rows).T
        return None, pad_rows(step.input_rows(), talker.min_rows), positions, *rest

    def _sample(
        self, logits: torch.Tensor, spec_decode_metadata: SpecDecodeMetadata | None
    ) -> SamplerOutput:
        # WHY not vLLM's sampler: its seeds are generators, whose state neither chunked prefill
        # (a missing offset ends the engine) nor a change of runner survives.
        tokens, frames = self._find_talker().talker_step.sample(logits)
        return SamplerOutput(
            sampled_token_ids=tokens[:, None].to(torch.int32),
            logprobs_tensors=pack_frames(frames),
        )

    def _find_talker(self) -> ServedTalker:
        talker: ServedTalker = self.model
        return talker


class TalkerCpuWorker(CPUWorker):  # type: ignore[misc]
    """vLLM's CPU worker with the talker's runner in place of the stock one."""

    def init_device(self) -> None:
        """Do what the stock worker does, then put the talker's runner in place."""
        # WHY: AMX attention never asks the kernel for its tiles; a process whose first prompt
        # has four tokens or fewer dies by SIGILL without a traceback.
        if torch.cpu._is_amx_tile_supported():
            torch.cpu._init_amx()
        if self.parallel_config.tensor_parallel_size > 1:
            # WHY: vLLM names the ranks' shared memory after what follows the last colon.
            host, port = os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]
            self.distributed_init_method = f"tcp://{host}:{port}"
        super().init_device()
        if not self.use_v2_model_runner:
            self.model_runner.__class__ = TalkerCpuRunner
