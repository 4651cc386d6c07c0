"""One vLLM engine in this process, built from its configuration objects and stepped by us.

No server, no tokenizer, no engine process: `InprocClient` over `EngineCore.step`, stock in every
part but the worker class on CPU.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from vllm.config import (
    CacheConfig,
    CompilationConfig,
    CompilationMode,
    CUDAGraphMode,
    DeviceConfig,
    LoadConfig,
    ModelConfig,
    ParallelConfig,
    SchedulerConfig,
    VllmConfig,
)
from vllm.platforms import current_platform
from vllm.sampling_params import SamplingParams
from vllm.v1.attention.backends.fa_utils import get_flash_attn_version
from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest, FinishReason
from vllm.v1.engine.core_client import InprocClient
from vllm.v1.executor import Executor

from cantata.config import ArDeployment
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.talker import Talker
from cantata.stages.ar.backbone_graphs import list_graph_sizes
from cantata.stages.ar.cpu_kernels import check_head_size, kernel_config
from cantata.stages.ar.environment import give_memory_back, let_threads_wake_in_time
from cantata.stages.ar.frame_output import unpack_frame
from cantata.stages.ar.frames import FrameRequest, NewFrame, StopReason
from cantata.stages.ar.served_model import LOAD_FORMAT, QUANTIZATION
from cantata.stages.ar.talker_step import ServedTalker

logger = logging.getLogger(__name__)

_BLOCK_SIZE = 32
"""Positions per KV block. CPU attention requires a multiple of 32."""
_MIN_SHARE = 0.05
_SHARED_WIDTHS = ("intermediate_size", "moe_intermediate_size")
_PLACEHOLDER = 0
"""For every position of a prompt without token ids: input rows come from the talker step."""
_CPU_WORKER = "cantata.stages.ar.runner_v1.TalkerCpuWorker"


_ENDINGS = {FinishReason.STOP: StopReason.END_CODE, FinishReason.LENGTH: StopReason.LENGTH}
"""Any other reason from vLLM is a fault."""


class TalkerEngine:
    """A vLLM engine that schedules, runs and ends requests of one talker.

    Implements `FrameEngine`.
    """

    def __init__(
        self, talker: type[Talker], architecture: str, checkpoint: Path, deployment: ArDeployment
    ) -> None:
        sizes = list_graph_sizes(deployment, talker)
        self._config = make_vllm_config(architecture, checkpoint, deployment, sizes)
        executor_class = Executor.get_class(self._config)
        self._client = InprocClient(self._config, executor_class, log_stats=False)
        self._core = self._client.engine_core
        runner = self._core.model_executor.driver_worker.worker.model_runner
        self._runner = runner
        self.talker: ServedTalker = runner.get_model()
        """The loaded model."""
        if deployment.quantization is not None:
            give_memory_back()
        if deployment.on_gpu:
            logger.info("vLLM computes with %s", describe_runner(runner))
        if deployment.on_gpu and deployment.cuda_graphs:
            self.talker.talker_step.record()

    def add(self, request: FrameRequest) -> None:
        end_code = self.talker.end_code
        params = SamplingParams(
            temperature=0.0,
            max_tokens=request.max_frames,
            stop_token_ids=None if end_code is None else [end_code],
            logprobs=self.talker.num_codebooks - 1,
            flat_logprobs=True,
            detokenize=False,
            skip_reading_prefix_cache=request.computes_all,
        )
        queued = EngineCoreRequest(
            request_id=request.request_id,
            prompt_token_ids=list(request.token_ids or [_PLACEHOLDER] * request.prompt_len),
            mm_features=None,
            sampling_params=params,
            pooling_params=None,
            # Orders requests of equal priority. WHY not the wall clock, as vLLM does: it jumps.
            arrival_time=time.monotonic(),
            lora_request=None,
            cache_salt=request.cache_salt,
            data_parallel_rank=None,
            priority=request.priority,
            resumable=request.resumable,
        )
        self._client.add_request(queued)

    def abort(self, request_id: str) -> None:
        """Forget a request; unknown ids are fine."""
        self._client.abort_requests([request_id])
        self._settle()

    def has_work(self) -> bool:
        """Whether there are requests."""
        return bool(self._core.scheduler.get_num_unfinished_requests())

    def step(self) -> Sequence[NewFrame]:
        """Schedule, run, postprocess: at most one frame per request."""
        outputs: Sequence[EngineCoreOutput] = self._client.get_output().outputs
        self._settle()
        return [_build_frame(output) for output in outputs]

    def _settle(self) -> None:
        """After the last request has ended, tell the runner at once.

        WHY: it learns of ended requests in the next step, and without requests there is none.
        """
        if not self.has_work() and self._core.scheduler.has_requests():
            self._client.get_output()

    def get_counts(self) -> dict[str, int]:
        """What vLLM holds now; all zero when idle."""
        pool = self._core.scheduler.kv_cache_manager.block_pool
        in_runner = (
            self._runner.req_states.req_id_to_index
            if self._config.use_v2_model_runner
            else self._runner.requests
        )
        return {
            "requests": self._core.scheduler.get_num_unfinished_requests(),
            # One block is vLLM's own placeholder.
            "kv_blocks": pool.num_gpu_blocks - 1 - pool.get_num_free_blocks(),
            "runner_requests": len(in_runner),
        }

    def close(self) -> None:
        """End the engine and free its memory."""
        let_threads_wake_in_time()
        self._client.shutdown()


def _build_frame(output: EngineCoreOutput) -> NewFrame:
    reason = output.finish_reason
    ending = None if reason is None else _ENDINGS.get(reason, StopReason.FAULT)
    if ending is StopReason.FAULT:
        return NewFrame(output.request_id, np.empty((1, 0), np.int32), ending)
    prefill = output.prefill_stats
    cached = 0 if prefill is None else prefill.num_cached_tokens
    return NewFrame(output.request_id, unpack_frame(output.new_logprobs), ending, cached)


def describe_runner(runner: Any) -> str:
    """What vLLM has chosen, which decides how fast a step is.

    Args:
        runner: vLLM's second model runner, with its keys and values.
    """
    backends = {group.backend.get_name() for groups in runner.attn_groups for group in groups}
    config, version = runner.compilation_config, get_flash_attn_version()
    attention = ", ".join(sorted(backends))
    graphs = f"graphs {config.cudagraph_mode.name} of {config.cudagraph_capture_sizes} positions"
    return f"attention {attention} (FlashAttention {version or 'missing'}), {graphs}"


def make_vllm_config(
    architecture: str,
    checkpoint: Path,
    deployment: ArDeployment,
    graph_sizes: Sequence[int] = (),
) -> VllmConfig:
    """All of vLLM's configuration, in one place.

    Args:
        architecture: as `register_talker` returned it.
        checkpoint: the model's folder.
        deployment: of the stage.
        graph_sizes: of `list_graph_sizes`.

    Raises:
        ConfigError: vLLM rejects the checkpoint's fields or the deployment, or has no attention
            for heads of this size.
    """
    if current_platform.device_type != deployment.device:
        raise ConfigError(
            f"device {deployment.device!r}: the installed vLLM is for "
            f"{current_platform.device_type!r}"
        )
    ranks = deployment.tensor_parallel
    try:
        model_config = ModelConfig(
            model=str(checkpoint),
            config_format=architecture,
            skip_tokenizer_init=True,
            # WHY not "auto": it turns a float32 checkpoint into bfloat16.
            dtype=deployment.dtype,
            max_model_len=deployment.max_model_len,
            # WHY not on a GPU, with or without graphs: vLLM would not warm its kernels up either,
            # and would compile some in the middle of a live step.
            enforce_eager=not deployment.on_gpu,
            max_logprobs=-1,
        )
        if deployment.device == "cpu":
            check_head_size(model_config.get_head_size(), model_config.dtype, _BLOCK_SIZE)
        check_divisible(model_config, ranks)
        config = VllmConfig(
            model_config=model_config,
            cache_config=CacheConfig(
                block_size=_BLOCK_SIZE,
                enable_prefix_caching=deployment.prefix_caching,
                # WHY: without a size the CPU engine claims 92% of the machine's memory.
                kv_cache_memory_bytes=_compute_kv_bytes(model_config, deployment),
                # WHY: with a size, this share only has to be free when vLLM starts. Another stage
                # may have its own part of the card; `served_model` sums what this one needs.
                gpu_memory_utilization=_MIN_SHARE,
            ),
            scheduler_config=SchedulerConfig(
                max_num_seqs=deployment.slots,
                max_num_batched_tokens=deployment.max_num_batched_tokens,
                max_model_len=deployment.max_model_len,
                is_encoder_decoder=False,
                enable_chunked_prefill=True,
                policy="priority",
                async_scheduling=False,
            ),
            parallel_config=ParallelConfig(
                worker_cls=_CPU_WORKER if deployment.device == "cpu" else "auto",
                tensor_parallel_size=ranks,
                # A rank is a process with an engine of its own; `ranks` starts them.
                distributed_executor_backend="uni" if ranks == 1 else "external_launcher",
            ),
            load_config=LoadConfig(
                load_format=LOAD_FORMAT,
                model_loader_extra_config={QUANTIZATION: deployment.quantization},
            ),
            device_config=DeviceConfig(device=deployment.device),
            compilation_config=_make_compilation_config(graph_sizes),
            kernel_config=kernel_config(deployment.device),
        )
    except ValueError as error:
        raise ConfigError(f"{checkpoint}: not servable by vLLM: {error}") from error
    if deployment.on_gpu and not config.use_v2_model_runner:
        # vLLM only warns; its first runner asks the model for what a talker has not.
        raise ConfigError("device 'cuda': vLLM chose its first model runner; it needs its second")
    return config


def _make_compilation_config(graph_sizes: Sequence[int]) -> CompilationConfig:
    """Of a backbone that is not compiled, and recorded in these sizes, if there are any.

    WHY the mode FULL: a graph holds any step, with prompts in it or without. vLLM itself falls back
    to graphs of steps in which all requests speak (FULL_DECODE_ONLY) if its attention cannot hold
    prompts, as FlashAttention 2 cannot. Graphs in pieces would need a compiled model.
    """
    if not graph_sizes:
        return CompilationConfig(mode=CompilationMode.NONE, cudagraph_mode=CUDAGraphMode.NONE)
    return CompilationConfig(
        mode=CompilationMode.NONE,
        cudagraph_mode=CUDAGraphMode.FULL,
        cudagraph_capture_sizes=list(graph_sizes),
    )


def check_divisible(model: ModelConfig, ranks: int) -> None:
    """Compare a model's sizes with the number of ranks that are to share them, as vLLM's layers do
    once they are built.

    Raises:
        ConfigError: names the size that cannot be shared.
    """
    kv_heads, text = model.get_total_num_kv_heads(), model.hf_text_config
    # Fewer heads of keys and values than ranks are copied to several of them.
    copied = ranks > kv_heads and ranks % kv_heads == 0
    sizes = {
        "heads": model.get_num_attention_heads(ParallelConfig()),
        "heads of keys and values": ranks if copied else kv_heads,
        **{f"columns of {name}": getattr(text, name, None) or ranks for name in _SHARED_WIDTHS},
    }
    for what, size in sizes.items():
        if size % ranks:
            raise ConfigError(f"tensor_parallel {ranks}: {size} {what} cannot be shared evenly")


def _compute_kv_bytes(model: ModelConfig, deployment: ArDeployment) -> int:
    """This rank's memory for the deployment's positions, or for every slot at its full length, and
    vLLM's own block."""
    kv_heads = max(1, model.get_total_num_kv_heads() // deployment.tensor_parallel)
    heads = model.get_total_num_hidden_layers() * kv_heads
    dtype: torch.dtype = model.dtype
    per_position: int = 2 * heads * model.get_head_size() * dtype.itemsize
    blocks = deployment.slots * -(-deployment.max_model_len // _BLOCK_SIZE)
    if deployment.kv_positions is not None:
        blocks = min(blocks, deployment.kv_positions // _BLOCK_SIZE)
    return (blocks + 1) * _BLOCK_SIZE * per_position
