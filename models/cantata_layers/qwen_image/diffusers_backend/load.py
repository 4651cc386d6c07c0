"""Loads diffusers' transformer, and hooks in what the deployment asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from cantata.contract.data.errors import ConfigError, NotInstalled
from cantata.contract.model.denoiser import DenoiserOptions, Parallel, Ranks
from cantata_layers.qwen_image.config import TRANSFORMER
from cantata_layers.qwen_image.diffusers_backend.network import HookedNetwork, enable_cache
from cantata_layers.qwen_image.lora import Fusion

HOST = torch.device("cpu")
STORED = torch.float8_e4m3fn
NEED_A_GPU = (Parallel.RING, Parallel.TENSOR)
"""diffusers refuses tensor parallelism on a CPU, and torch's attention there has no ring."""


def load_hooked_network(
    checkpoint: Path, options: DenoiserOptions, fusion: Fusion | None
) -> HookedNetwork:
    """Return a checkpoint's network.

    Raises:
        NotInstalled: diffusers is missing.
        ConfigError: weights are missing, a LoRA does not fit, or an option cannot be had here.
    """
    hooked, ranks = options.hooked, options.ranks
    assert hooked is not None
    device, dtype = torch.device(options.device), getattr(torch, options.dtype)
    shares = ranks is not None and ranks.kind is not Parallel.BRANCHES
    _check_possible(options, device)
    transformer = _read(checkpoint, dtype, fusion)
    if hooked.attention is not None:
        _choose_attention(transformer, hooked.attention)
    if hooked.float8:
        transformer.enable_layerwise_casting(storage_dtype=STORED, compute_dtype=dtype)
    if hooked.offload_blocks is None:
        transformer.to(device)
    else:
        transformer.enable_group_offload(
            onload_device=device,
            offload_device=HOST,
            offload_type="block_level",
            num_blocks_per_group=hooked.offload_blocks,
            use_stream=device.type == "cuda",
        )
    if ranks is not None and shares:
        _share(transformer, ranks, device)
    if options.skipping is not None:
        enable_cache(transformer, options.skipping)
    remembers = options.skipping is not None
    # Gloo gathers equal parts only.
    divisor = ranks.size if ranks is not None and shares and device.type == "cpu" else 1
    return HookedNetwork(
        transformer,
        device,
        dtype,
        alone=shares or remembers,
        remembers=remembers,
        shares=divisor,
    )


def _check_possible(options: DenoiserOptions, device: torch.device) -> None:
    assert options.hooked is not None
    kind = None if options.ranks is None else options.ranks.kind
    if kind in NEED_A_GPU and device.type != "cuda":
        raise ConfigError(
            f"parallel: diffusers has no {kind.value!r} on a CPU; valid here: "
            f"{Parallel.BRANCHES.value!r}, {Parallel.ULYSSES.value!r}"
        )
    if kind is Parallel.TENSOR and (options.hooked.float8 or options.hooked.offload_blocks):
        raise ConfigError("hooked: 'tensor' goes with neither float8 nor offload_blocks")


def _read(checkpoint: Path, dtype: torch.dtype, fusion: Fusion | None) -> Any:
    try:
        from diffusers import QwenImageTransformer2DModel
    except ImportError as error:
        raise NotInstalled(
            "hooked: needs diffusers 0.42.1; install the extra `diffusers`: "
            "pip install 'cantata[diffusers]'"
        ) from error
    transformer, found = QwenImageTransformer2DModel.from_pretrained(
        checkpoint,
        subfolder=TRANSFORMER,
        torch_dtype=dtype,
        local_files_only=True,
        output_loading_info=True,
    )
    if wrong := {kind: names for kind, names in found.items() if names}:
        raise ConfigError(f"{checkpoint / TRANSFORMER}: the weights do not fit: {wrong}")
    transformer.eval().requires_grad_(False)
    if fusion is not None:
        for name, tensor in transformer.named_parameters():
            tensor.data = fusion.fused(name, tensor.data, HOST).to(dtype)
        fusion.check_complete()
    return transformer


def _choose_attention(transformer: Any, name: str) -> None:
    try:
        transformer.set_attention_backend(name)
    except (ValueError, RuntimeError, ImportError) as error:
        raise ConfigError(f"hooked: attention: {error}") from error


def _share(transformer: Any, ranks: Ranks, device: torch.device) -> None:
    from diffusers import ContextParallelConfig, TensorParallelConfig

    heads = transformer.config.num_attention_heads
    if ranks.kind is not Parallel.RING and heads % ranks.size:
        raise ConfigError(f"parallel: {ranks.size} ranks cannot share {heads} heads evenly")
    configs = {
        Parallel.ULYSSES: lambda: ContextParallelConfig(
            ulysses_degree=ranks.size, ulysses_anything=True
        ),
        Parallel.RING: lambda: ContextParallelConfig(ring_degree=ranks.size, ring_anything=True),
        Parallel.TENSOR: lambda: TensorParallelConfig(tp_degree=ranks.size),
    }
    with _counted(device):
        transformer.enable_parallelism(config=configs[ranks.kind]())


@contextmanager
def _counted(device: torch.device) -> Iterator[None]:
    """WHY: diffusers divides the rank by the number of accelerators, also where there is none."""
    if device.type == "cuda":
        yield
        return
    counting = torch.accelerator.device_count
    torch.accelerator.device_count = lambda: 1
    try:
        yield
    finally:
        torch.accelerator.device_count = counting
