"""Builds AR stages whose engine is `graph_engine`: they need no part of vLLM's Python."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import torch

from cantata.config import ArDeployment
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.factory import resolve
from cantata.contract.model.pipeline import StageSpec
from cantata.contract.model.plain_talker import BackboneKernels, PlainTalker, PlainTalkerOptions
from cantata.contract.process.stage import Stage
from cantata.stages.ar.environment import limit_kernel_cache
from cantata.stages.ar.graph_engine import GraphEngine, allocate
from cantata.stages.ar.stage import ArStage
from cantata.stages.ar.step_graphs import StepShapes
from cantata.stages.ar.torch_kernels import TorchKernels
from cantata.stages.ar.vllm_kernels import load_kernels
from cantata.stages.common.device import check_memory, free_bytes

logger = logging.getLogger(__name__)


def build_graph_stage(
    spec: StageSpec,
    checkpoint: Path,
    deployment: ArDeployment,
    kernels: BackboneKernels | None = None,
) -> Stage:
    """Load a talker and, on a GPU, record its steps.

    Args:
        spec: has a `plain` talker.
        checkpoint: the model's folder.
        deployment: how it is served.
        kernels: None: on a CPU in float32 vLLM's, if they are installed; else torch's.

    Returns:
        The stage, ready for requests.

    Raises:
        ConfigError: no such talker, a checkpoint that it rejects, or too little memory.
    """
    if spec.plain is None:
        raise ConfigError(f"stage {spec.name!r}: engine 'graphs': its model runs on 'vllm' alone")
    limit_kernel_cache()
    device, dtype = torch.device(deployment.device), getattr(torch, deployment.dtype)
    kernels = find_kernels(device, dtype) if kernels is None else kernels
    load: Callable[[Path, PlainTalkerOptions], PlainTalker] = resolve(spec.plain)
    options = PlainTalkerOptions(kernels, device, dtype, deployment.max_model_len)
    talker = load(checkpoint, options)
    logger.info("engine of %r: graphs, with %s", spec.name, type(kernels).__name__)
    positions = min(deployment.max_model_len, talker.max_positions)
    deployment = deployment.model_copy(update={"max_model_len": positions})
    _check_memory(talker, deployment, device)
    if not (deployment.on_gpu and deployment.cuda_graphs):
        return ArStage(GraphEngine(talker, deployment, device), deployment)
    engine = GraphEngine(talker, deployment, device, StepShapes(deployment.slots, positions))
    engine.record(deployment.sampling)
    return ArStage(engine, deployment)


def find_kernels(device: torch.device, dtype: torch.dtype) -> BackboneKernels:
    """The kernels of a backbone there."""
    exact = load_kernels() if device.type == "cpu" and dtype == torch.float32 else None
    return TorchKernels(dtype) if exact is None else exact


def _check_memory(talker: PlainTalker, deployment: ArDeployment, device: torch.device) -> None:
    """Compare what all requests are going to hold with what is free, by what one slot takes.

    Raises:
        ConfigError: it does not fit.
    """
    states, memory = allocate(talker, deployment, device, slots=0)
    slots = deployment.slots + 1
    needs = {
        "keys and values": slots * memory.num_bytes,
        "requests' rows and frames": slots * states.num_bytes,
    }
    check_memory(needs, free_bytes(device), device.type, "lower slots or max_model_len")
