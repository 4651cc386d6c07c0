"""The AR stage kind on stock vLLM: the only package of the backend that uses vLLM.

A step, from the outside in: `stage` (requests in, frames out; `prompts` and `row_supply` help it
with the requests' rows, `chunking` with what leaves) calls a `FrameEngine` of `frames`:
`engine` (vLLM's own scheduler and step), whose runner has the hooks of `runner_v1` (CPU) or
`runner_v2` (CUDA), which ask `talker_step` for input rows and frames; or `graph_engine`, without
vLLM's Python. Both make them from `request_state`.

The second one, from the outside in: `lanes` and `step_plans` choose each batch, `step_graphs`
records or calls the functions of `slot_steps`, which run the talker over `lane_memory` with
`vllm_kernels` or `torch_kernels`.

`served_model` registers a plug-in's class with vLLM, `frame_output` carries frames out of it,
`ranks` has several processes share a model,
`environment` sets what it reads from the process, `vllm_symbols` pins the symbols in use.
"""

from __future__ import annotations

import importlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.pipeline import CODES, LATENTS, ROWS, StageSpec
from cantata.contract.process.stage import Stage
from cantata.stages.ar.environment import (
    imports_exempt_from_collection,
    limit_kernel_cache,
    prepare_environment,
    threads_that_wake_seldom,
)

if TYPE_CHECKING:
    from cantata.config import ArDeployment

logger = logging.getLogger(__name__)


def build_stage(spec: StageSpec, checkpoint: Path, deployment: ArDeployment) -> Stage:
    """Load a talker and start its engine in this process.

    Args:
        spec: its factory is a vLLM model class that implements `contract.model.talker.Talker`.
        checkpoint: the model's folder.
        deployment: how it is served.

    Returns:
        The stage, ready for requests.

    Raises:
        ConfigError: no such class, or a checkpoint or deployment that vLLM rejects.
    """
    if deployment.engine == "graphs":
        from cantata.stages.ar.graph_stage import build_graph_stage

        return build_graph_stage(spec, checkpoint, deployment)
    if deployment.tensor_parallel > 1:
        # It starts the processes of the other ranks.
        from cantata.stages.ar.ranks.stage import load_ranks

        return load_ranks(spec, checkpoint, deployment)
    return build_share(spec, checkpoint, deployment)


def build_share(spec: StageSpec, checkpoint: Path, deployment: ArDeployment) -> Stage:
    """Like `build_stage`, for this process alone: the whole model, or this rank's share of it, if
    the process is one of the deployment's ranks."""
    prepare_environment()
    limit_kernel_cache()
    module, _, name = spec.factory.partition(":")
    with imports_exempt_from_collection():
        # vLLM reads the environment when it is imported, and all of these import it.
        from cantata.stages.ar.engine import TalkerEngine
        from cantata.stages.ar.served_model import register_talker
        from cantata.stages.ar.stage import ArStage

        try:
            talker = getattr(importlib.import_module(module), name)
        except (ModuleNotFoundError, AttributeError) as error:
            raise ConfigError(f"no talker class at {spec.factory!r}: {error}") from error
    if deployment.tensor_parallel > 1 and not talker.shardable:
        raise ConfigError(
            f"stage {spec.name!r}: tensor_parallel {deployment.tensor_parallel}: its model cannot "
            "be shared among devices; valid: 1"
        )
    architecture = register_talker(spec.factory, talker)
    deployment = limit_positions(deployment, talker, checkpoint)
    with threads_that_wake_seldom(on_gpu=deployment.on_gpu):
        engine = TalkerEngine(talker, architecture, checkpoint, deployment)
    if ROWS in spec.ports and not engine.talker.export_width:
        raise ConfigError(f"stage {spec.name!r} has a port {ROWS!r}; its model exports none")
    if (LATENTS in spec.ports) != bool(engine.talker.latent_size):
        output = LATENTS if engine.talker.latent_size else CODES
        raise ConfigError(
            f"stage {spec.name!r} has ports {list(spec.ports)}; its model makes {output}"
        )
    return ArStage(engine, deployment, exports_rows=ROWS in spec.ports)


def build_plain_stage(spec: StageSpec, checkpoint: Path, deployment: ArDeployment) -> Stage | None:
    """Load a talker that needs no part of vLLM except its compiled kernels.

    Args:
        spec: has a `plain` talker.
        checkpoint: the model's folder.
        deployment: on a CPU, in float32.

    Returns:
        The stage; None if the installed vLLM has no kernels for this processor.

    Raises:
        ConfigError: as `graph_stage.build_graph_stage`.
    """
    from cantata.stages.ar.graph_stage import build_graph_stage
    from cantata.stages.ar.vllm_kernels import load_kernels

    kernels = load_kernels()
    return None if kernels is None else build_graph_stage(spec, checkpoint, deployment, kernels)


def limit_positions(deployment: ArDeployment, talker: Any, checkpoint: Path) -> ArDeployment:
    """Return the deployment with no more positions for a request than the checkpoint has."""
    positions = talker.vllm_config_fields(checkpoint).get("max_position_embeddings")
    if positions is None or deployment.max_model_len <= positions:
        return deployment
    logger.info(
        "max_model_len is %d, not %d: the checkpoint has no more positions",
        positions,
        deployment.max_model_len,
    )
    return deployment.model_copy(update={"max_model_len": positions})
