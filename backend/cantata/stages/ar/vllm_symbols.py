"""Every symbol of vLLM that this package touches, with the parameters it had in 0.32.

A new release that moves one of them fails one test that names it, before any engine is started.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

VLLM_VERSION = "0.32"

OVERRIDDEN: Mapping[str, str] = {
    "vllm.v1.worker.gpu_model_runner:GPUModelRunner._determine_batch_execution_and_padding": (
        "self num_tokens num_reqs num_scheduled_tokens_np max_num_scheduled_tokens "
        "use_cascade_attn allow_microbatching force_eager force_uniform_decode force_has_lora "
        "force_num_active_loras num_encoder_reqs"
    ),
    "vllm.v1.worker.gpu_model_runner:GPUModelRunner._preprocess": (
        "self scheduler_output num_input_tokens intermediate_tensors"
    ),
    "vllm.v1.worker.gpu_model_runner:GPUModelRunner._sample": "self logits spec_decode_metadata",
    "vllm.v1.worker.cpu_model_runner:CPUModelRunner": "vllm_config device",
    "vllm.v1.worker.cpu_worker:CPUWorker.init_device": "self",
    "vllm.v1.worker.gpu.model_states.default:DefaultModelState": (
        "vllm_config model encoder_cache device"
    ),
    "vllm.v1.worker.gpu.model_states.default:DefaultModelState.prepare_inputs": (
        "self input_batch req_states"
    ),
    "vllm.v1.worker.gpu.model_states.default:DefaultModelState.prepare_dummy_inputs": (
        "self num_reqs num_tokens"
    ),
    "vllm.v1.worker.gpu.model_states.interface:ModelState.custom_sampler": "self sampler",
    "vllm.v1.worker.gpu.sample.sampler:Sampler.__call__": "self logits input_batch",
    "vllm.model_executor.model_loader.base_loader:BaseModelLoader.download_model": (
        "self model_config"
    ),
    "vllm.model_executor.model_loader.base_loader:BaseModelLoader.load_weights": (
        "self model model_config"
    ),
    "vllm.transformers_utils.config_parser_base:ConfigParserBase.parse": (
        "self model trust_remote_code revision code_revision kwargs"
    ),
}
"""What a subclass of ours replaces -> all of its parameters."""

USED: Mapping[str, str] = {
    "vllm.config.kernel:KernelConfig": "ir_op_priority enable_flashinfer_autotune",
    "vllm.distributed:get_tp_group": "",
    "vllm.v1.executor.uniproc_executor:ExecutorWithExternalLauncher": ("vllm_config"),
    "vllm._custom_ops:create_onednn_scaled_mm": (
        "weight weight_scales output_type dynamic_quant use_azp"
    ),
    "vllm._custom_ops:onednn_scaled_int8_quant": "input",
    "vllm._custom_ops:onednn_scaled_mm": (
        "dnnl_handler x output input_scale input_zp input_zp_adj bias"
    ),
    "vllm._custom_ops:cpu_attn_get_scheduler_metadata": (
        "num_reqs num_heads num_kv_heads head_dim seq_lens dtype query_start_loc causal "
        "sliding_window_size isa enable_kv_split"
    ),
    "vllm.config:CacheConfig": "block_size enable_prefix_caching kv_cache_memory_bytes",
    "vllm.config:CUDAGraphMode.FULL": "",
    "vllm.config:CUDAGraphMode.NONE": "",
    "vllm.config:CompilationConfig": "mode cudagraph_mode cudagraph_capture_sizes",
    "vllm.config:CompilationMode.NONE": "",
    "vllm.config:DeviceConfig": "device",
    "vllm.config:LoadConfig": "load_format model_loader_extra_config",
    "vllm.config:ModelConfig": (
        "model config_format skip_tokenizer_init dtype max_model_len enforce_eager max_logprobs"
    ),
    "vllm.config:ModelConfig.get_head_size": "self",
    "vllm.config:ModelConfig.get_hidden_size": "self",
    "vllm.config:ParallelConfig": "worker_cls distributed_executor_backend",
    "vllm.config:SchedulerConfig": (
        "max_num_seqs max_num_batched_tokens max_model_len is_encoder_decoder "
        "enable_chunked_prefill policy async_scheduling"
    ),
    "vllm.config:VllmConfig": (
        "model_config cache_config scheduler_config parallel_config load_config device_config "
        "compilation_config"
    ),
    "vllm.config:VllmConfig.use_v2_model_runner": "",
    "vllm.model_executor.model_loader:register_model_loader": "load_format",
    "vllm.model_executor.models:ModelRegistry.register_model": "model_arch model_cls",
    "vllm.platforms:current_platform.device_type": "",
    "vllm.platforms:current_platform.import_kernels": "",
    "vllm.sampling_params:SamplingParams": (
        "temperature max_tokens stop_token_ids logprobs flat_logprobs detokenize"
    ),
    "vllm.transformers_utils.config:register_config_parser": "config_format",
    "vllm.v1.attention.backends.cpu_attn:_get_attn_isa": "dtype block_size head_size",
    "vllm.v1.attention.backends.fa_utils:get_flash_attn_version": "",
    "vllm.v1.core.block_pool:BlockPool.get_num_free_blocks": "self",
    "vllm.v1.core.sched.scheduler:Scheduler.get_num_unfinished_requests": "self",
    "vllm.v1.core.sched.scheduler:Scheduler.has_requests": "self",
    "vllm.v1.engine:EngineCoreOutput": "request_id finish_reason new_logprobs prefill_stats",
    "vllm.v1.engine:EngineCoreRequest": (
        "request_id prompt_token_ids mm_features sampling_params pooling_params arrival_time "
        "lora_request cache_salt data_parallel_rank priority resumable"
    ),
    "vllm.v1.engine:FinishReason": "",
    "vllm.v1.engine.core_client:InprocClient": "vllm_config executor_class log_stats",
    "vllm.v1.engine.core_client:InprocClient.abort_requests": "request_ids",
    "vllm.v1.engine.core_client:InprocClient.add_request": "request",
    "vllm.v1.engine.core_client:InprocClient.get_output": "self",
    "vllm.v1.engine.core_client:InprocClient.shutdown": "self",
    "vllm.v1.executor:Executor.get_class": "vllm_config",
    "vllm.v1.outputs:LogprobsLists": "logprob_token_ids",
    "vllm.v1.outputs:LogprobsTensors": "logprob_token_ids logprobs selected_token_ranks",
    "vllm.v1.outputs:SamplerOutput": "sampled_token_ids logprobs_tensors",
    "vllm.v1.worker.gpu.input_batch:get_num_sampled_and_rejected": (
        "num_sampled seq_lens cu_num_logits idx_mapping prefill_len"
    ),
    "vllm.v1.worker.gpu.input_batch:InputBatch": (
        "req_ids num_reqs num_computed_tokens_np num_scheduled_tokens num_tokens_after_padding "
        "seq_lens cu_num_logits idx_mapping"
    ),
    "vllm.v1.worker.gpu.sample.output:SamplerOutput": (
        "sampled_token_ids logprobs_tensors num_nans num_sampled num_rejected"
    ),
}
"""What we call or build -> the parameters that we pass or the fields that we read."""


def list_moved_symbols() -> list[str]:
    """What the installed vLLM no longer has in the form that this package relies on.

    Returns:
        One line per symbol; empty when all is well.
    """
    moved = []
    for symbol, expected in {**OVERRIDDEN, **USED}.items():
        try:
            found = _list_parameters(_resolve(symbol))
        except (ImportError, AttributeError) as error:
            moved.append(f"{symbol}: {error}")
            continue
        wanted = expected.split()
        if symbol in OVERRIDDEN and found != wanted:
            moved.append(f"{symbol}: parameters are now {' '.join(found)}")
        elif missing := set(wanted) - set(found):
            moved.append(f"{symbol}: no longer has {' '.join(sorted(missing))}")
    return moved


def _resolve(symbol: str) -> Any:
    module, _, path = symbol.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _list_parameters(found: Any) -> list[str]:
    """Names of a function's parameters or of a class's constructor; none of a plain value."""
    if isinstance(found, property) or not callable(found):
        return []
    return list(inspect.signature(found).parameters)
