"""What an AR stage will hold: its share of the weights, keys and values, states, graphs."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from cantata.config import ArDeployment
from cantata.contract.model.factory import resolve
from cantata.contract.model.pipeline import StageSpec
from cantata.contract.model.plain_talker import PlainTalker, PlainTalkerOptions
from cantata.stages.ar.backbone_graphs import list_graph_sizes
from cantata.stages.ar.environment import imports_exempt_from_collection, prepare_environment
from cantata.stages.common.needs import (
    GRAPH_BYTES,
    GRAPHS,
    META,
    STATE,
    WEIGHTS,
    count_made,
    count_row_graphs,
)

if TYPE_CHECKING:
    from cantata.stages.ar.step_graphs import StepShapes

KEYS_AND_VALUES = "keys and values"


def prepare_needs(
    spec: StageSpec, checkpoint: Path, deployment: ArDeployment
) -> Callable[[], Mapping[str, int]]:
    """Import what the stage needs, and return what measures each of its devices.

    vLLM keeps tables for later layers, which would have no memory: the process that measures must
    not be the one that serves.
    """
    if deployment.engine == "graphs":
        return partial(_measure_graph_engine, spec, checkpoint, deployment)
    prepare_environment()
    with imports_exempt_from_collection():
        # vLLM reads the environment when it is imported, and both of these import it.
        importlib.import_module("cantata.stages.ar.engine")
        factory = resolve(spec.factory)
    return partial(_measure_vllm, factory, spec, checkpoint, deployment)


def _measure_vllm(
    factory: Any, spec: StageSpec, checkpoint: Path, deployment: ArDeployment
) -> Mapping[str, int]:
    from vllm.config import set_current_vllm_config

    from cantata.stages.ar import limit_positions
    from cantata.stages.ar.engine import make_vllm_config
    from cantata.stages.ar.served_model import register_talker

    deployment = limit_positions(deployment, factory, checkpoint)
    alone = deployment.model_copy(update={"tensor_parallel": 1})
    config = make_vllm_config(register_talker(spec.factory, factory), checkpoint, alone)
    ranks = deployment.tensor_parallel
    with set_current_vllm_config(config), _only_rank():
        talker, states = _build_on_meta(factory, config)
    return {
        WEIGHTS: sum(
            # What vLLM's loaders fill, they share among the ranks.
            tensor.nbytes // (ranks if hasattr(tensor, "weight_loader") else 1)
            for tensor in (*talker.parameters(), *talker.buffers())
        ),
        KEYS_AND_VALUES: config.cache_config.kv_cache_memory_bytes // ranks,
        STATE: states,
        GRAPHS: GRAPH_BYTES * _count_graphs(talker, deployment),
    }


def _build_on_meta(factory: Any, config: Any) -> tuple[Any, int]:
    """The talker's network, and the bytes of its requests' states."""
    from vllm.utils.torch_utils import set_default_torch_dtype

    from cantata.stages.ar.request_state import RequestStates
    from cantata.stages.ar.talker_step import get_layout

    model = config.model_config
    with set_default_torch_dtype(model.dtype), META:
        talker = factory(vllm_config=config)
        states = RequestStates(
            slots=config.scheduler_config.max_num_seqs,
            max_model_len=model.max_model_len,
            layout=get_layout(talker),
            hidden_size=model.get_hidden_size(),
            dtype=model.dtype,
            device=META,
        )
    return talker, states.num_bytes


@contextmanager
def _only_rank() -> Iterator[None]:
    """vLLM's layers ask how many ranks there are, and which one this is."""
    from vllm.distributed.parallel_state import (
        destroy_distributed_environment,
        destroy_model_parallel,
        init_distributed_environment,
        initialize_model_parallel,
    )

    with tempfile.TemporaryDirectory() as folder:
        init_distributed_environment(1, 0, f"file://{Path(folder, 'meeting')}", 0, "gloo")
        initialize_model_parallel()
        try:
            yield
        finally:
            destroy_model_parallel()
            destroy_distributed_environment()


def _count_graphs(talker: Any, deployment: ArDeployment) -> int:
    """Of the backbone, of the completion of frames, and of the embedding of latents."""
    from cantata.stages.ar.recorded_frames import iterate_kinds

    backbone = list_graph_sizes(deployment, type(talker))
    if not (deployment.on_gpu and deployment.cuda_graphs and talker.recordable):
        return len(backbone)
    rows = count_row_graphs(max(deployment.slots, talker.min_rows))
    return len(backbone) + rows * (len(list(iterate_kinds(talker))) + bool(talker.latent_size))


def _measure_graph_engine(
    spec: StageSpec, checkpoint: Path, deployment: ArDeployment
) -> Mapping[str, int]:
    from cantata.stages.ar.graph_engine import GraphEngine
    from cantata.stages.ar.step_graphs import StepShapes
    from cantata.stages.ar.torch_kernels import TorchKernels

    dtype: torch.dtype = getattr(torch, deployment.dtype)
    assert spec.plain is not None, "checked with the deployment"
    load: Callable[[Path, PlainTalkerOptions], PlainTalker] = resolve(spec.plain)
    options = PlainTalkerOptions(TorchKernels(dtype), META, dtype, deployment.max_model_len)
    talker, weights = count_made(lambda: load(checkpoint, options))
    positions = min(deployment.max_model_len, talker.max_positions)
    deployment = deployment.model_copy(update={"max_model_len": positions})
    _, held = count_made(lambda: GraphEngine(talker, deployment, META))
    records = deployment.cuda_graphs and deployment.on_gpu
    graphs = _count_step_graphs(StepShapes(deployment.slots, positions)) if records else 0
    return {WEIGHTS: weights, f"{KEYS_AND_VALUES}, {STATE}": held, GRAPHS: GRAPH_BYTES * graphs}


def _count_step_graphs(shapes: StepShapes) -> int:
    """As `StepGraphs.record`, where the usual kind of frames is not the one for all."""
    from cantata.stages.ar.step_graphs import MAX_PROMPT_ROWS

    decodes = len(shapes.list_batches()) * (len(shapes.list_lengths()) + 1)
    prompts = [length for length in shapes.list_prompts() if length <= MAX_PROMPT_ROWS]
    return decodes + 2 * sum(len(shapes.list_prompt_batches(length)) for length in prompts)
