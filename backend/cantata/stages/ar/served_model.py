"""How a plug-in's talker becomes a model that vLLM knows, without importing the backend.

vLLM has registries for model classes, config formats and load formats. A talker's class
is mixed with `ServedTalkerMixin` and registered as a class object (WHY: a model registered by name
is imported in a subprocess first, which costs seconds).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn
from transformers import PretrainedConfig
from vllm.config import ModelConfig, VllmConfig
from vllm.distributed import get_tp_group
from vllm.model_executor.model_loader import register_model_loader
from vllm.model_executor.model_loader.base_loader import BaseModelLoader
from vllm.model_executor.models import ModelRegistry
from vllm.transformers_utils.config import register_config_parser
from vllm.transformers_utils.config_parser_base import ConfigParserBase

from cantata.contract.model.talker import Talker
from cantata.stages.ar.quantization import quantize_stacks
from cantata.stages.ar.request_state import RequestStates
from cantata.stages.ar.talker_step import TalkerStep, get_layout, pad_rows
from cantata.stages.common.device import check_memory, free_bytes
from cantata.stages.common.needs import GRAPH_BYTES

LOAD_FORMAT = "cantata"
QUANTIZATION = "quantization"
"""Key of the load format's own configuration."""
META = torch.device("meta")


class ServedTalkerMixin:
    """What the engine adds in front of a plug-in's model class."""

    talker_step: TalkerStep
    sampled_hidden: torch.Tensor
    exported: torch.Tensor
    is_shared_on_cpu: bool
    """Other processes have shares of the layers."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)  # type: ignore[call-arg]
        config = vllm_config.model_config
        make_states = partial(
            RequestStates,
            slots=vllm_config.scheduler_config.max_num_seqs,
            max_model_len=config.max_model_len,
            layout=get_layout(self),  # type: ignore[arg-type]
            hidden_size=config.get_hidden_size(),
            dtype=config.dtype,
        )
        device = torch.device(vllm_config.device_config.device)
        ranks = vllm_config.parallel_config.tensor_parallel_size
        self.is_shared_on_cpu = ranks > 1 and device.type == "cpu"
        _check_memory(self, vllm_config, make_states(device=META).num_bytes, device)  # type: ignore[arg-type]
        states = make_states(device=device)
        self.talker_step = TalkerStep(self, states)  # type: ignore[arg-type]
        if self.export_width:  # type: ignore[attr-defined]
            # WHY one static buffer: Python does not run when a captured graph is replayed.
            positions = vllm_config.scheduler_config.max_num_batched_tokens
            rows = max(positions, self.min_rows)  # type: ignore[attr-defined]
            self.exported = states.rows.new_zeros(rows, self.export_width)  # type: ignore[attr-defined]

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states; keeps those that leave."""
        hidden: torch.Tensor = super().forward(  # type: ignore[misc]
            input_ids, positions, intermediate_tensors, inputs_embeds
        )
        if self.export_width:  # type: ignore[attr-defined]
            self.exported[: len(hidden)] = self.export_rows(hidden)  # type: ignore[attr-defined]
        return hidden

    def embed_input_ids(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Part of vLLM's model interface; token ids are placeholders here."""
        raise NotImplementedError("a talker's input rows come from its talker step")

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V] scores of code 0; keeps the hidden states for the frame's rest.

        WHY: vLLM's samplers are given the logits alone.
        """
        self.sampled_hidden = pad_rows(hidden_states, self.min_rows)  # type: ignore[attr-defined]
        logits: torch.Tensor = super().compute_logits(self.sampled_hidden)  # type: ignore[misc]
        logits = logits[: hidden_states.shape[0]]
        if self.is_shared_on_cpu:
            # WHY: there each rank adds the shares in an order of its own; all must draw the same.
            logits = get_tp_group().broadcast(logits.contiguous())
        return logits

    @classmethod
    def get_model_state_cls(cls) -> type[Any]:
        """How vLLM's second model runner asks for its hooks."""
        from cantata.stages.ar.runner_v2 import TalkerModelState

        return TalkerModelState


def _check_memory(
    talker: nn.Module, vllm_config: VllmConfig, states: int, device: torch.device
) -> None:
    """Compare what the talker is going to hold with what is free, before any of it is filled.

    Raises:
        ConfigError: it does not fit.
    """
    tensors = (*talker.parameters(), *talker.buffers())
    weights, free = sum(tensor.nbytes for tensor in tensors), free_bytes(device)
    if device.type != "cpu":
        free += weights  # they are there already; the kernel of a CPU grants them when they come
    needs = {
        "weights": weights,
        "keys and values": vllm_config.cache_config.kv_cache_memory_bytes or 0,
        "requests' rows and frames": states,
    }
    if recorded := vllm_config.compilation_config.cudagraph_capture_sizes:
        needs["the backbone's graphs"] = GRAPH_BYTES * len(recorded)
    check_memory(needs, free, device.type, "lower slots, max_model_len or kv_positions")


@register_model_loader(LOAD_FORMAT)
class CheckpointLoader(BaseModelLoader):  # type: ignore[misc]
    """Lets the talker read its own checkpoint folder."""

    def download_model(self, model_config: ModelConfig) -> None:
        """Checkpoints are local folders."""

    def load_weights(self, model: Talker, model_config: ModelConfig) -> None:
        """Fill `model` from the folder."""
        model.load_checkpoint(Path(model_config.model))
        quantization = self.load_config.model_loader_extra_config.get(QUANTIZATION)
        if quantization is not None:
            quantize_stacks(model, quantization)


def register_talker(name: str, talker: type[Talker]) -> str:
    """Make a talker's class known to vLLM.

    Args:
        name: unique to this class; serves as its architecture and config format.
        talker: a vLLM model class that is a `contract.model.talker.Talker`.

    Returns:
        The config format under which a checkpoint folder of this talker can be opened.
    """
    served = type(f"Served{talker.__name__}", (ServedTalkerMixin, talker), {})
    ModelRegistry.register_model(name, served)

    class TalkerConfigParser(ConfigParserBase):  # type: ignore[misc]
        """Builds vLLM's view of a checkpoint, whose own config may have any form."""

        architecture: ClassVar[str] = name

        def parse(
            self,
            model: str | Path,
            trust_remote_code: bool,
            revision: str | None = None,
            code_revision: str | None = None,
            **kwargs: Any,
        ) -> tuple[dict[str, Any], PretrainedConfig]:
            config = talker.vllm_config(Path(model))
            config.architectures = [self.architecture]
            return config.to_dict(), config

    register_config_parser(name)(TalkerConfigParser)
    return name
