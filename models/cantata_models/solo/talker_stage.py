"""solo's talker for the AR stage. Its backbone uses vLLM's layers; training shares the rest.

Letters: N rows, R requests, D hidden size, V codes in codebook 0, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
from vllm.model_executor.layers.quantization.base_config import (
    QuantizationConfig,
    QuantizeMethodBase,
)
from vllm.platforms import current_platform

from cantata.contract.data.errors import ConfigError
from cantata_layers.parameters import ParameterLoader
from cantata_layers.qwen3 import config_fields, make_layers, run_layers
from cantata_models.solo.checkpoint import TALKER_FILE, read_tensors
from cantata_models.solo.config import load_config
from cantata_models.solo.networks.packed_product import PackedProduct
from cantata_models.solo.talker_front import TalkerFront


class HalfWeights(QuantizationConfig):  # type: ignore[misc]
    """Float16 weights with float32 activations in vLLM's linear layers on a CPU.

    This halves the memory traffic and loses nothing, since a checkpoint is float16. It is
    exact for any number of rows: see `networks.packed_product`. Checkpoints say nothing of it.
    """

    def get_name(self) -> str:
        return "half_weights"

    def get_supported_act_dtypes(self) -> list[torch.dtype]:
        return [torch.float32]

    @classmethod
    def get_min_capability(cls) -> int:
        """Returns the minimum GPU capability; no GPU is needed."""
        return 0

    @staticmethod
    def get_config_filenames() -> list[str]:
        return []

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> HalfWeights:
        """Ignores the config, which holds nothing."""
        return cls()

    def get_quant_method(self, layer: torch.nn.Module, prefix: str) -> QuantizeMethodBase | None:
        return _HalfLinear() if isinstance(layer, LinearBase) else None


class _HalfLinear(UnquantizedLinearMethod):  # type: ignore[misc]
    """Loads like an ordinary layer, then repacks its weights."""

    def process_weights_after_loading(self, layer: Any) -> None:
        layer.product = PackedProduct(layer.weight.data)
        layer.weight = torch.nn.Parameter(layer.weight.new_empty(0), requires_grad=False)

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        product: torch.Tensor = layer.product(x)
        return product if bias is None else product + bias


def get_weights(dtype: torch.dtype) -> HalfWeights | None:
    """Returns the quantization for a backbone that computes in `dtype` on this machine, or None."""
    return HalfWeights() if current_platform.is_cpu() and dtype == torch.float32 else None


class SoloTalker(TalkerFront):
    """The talker as vLLM serves it."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        model_config = vllm_config.model_config
        config = load_config(Path(model_config.model))
        super().__init__(config)
        weights = get_weights(model_config.dtype)
        self.layers = make_layers(vllm_config, config.talker.layers, prefix, weights)
        self.norm = RMSNorm(config.talker.hidden_size, eps=config.talker.rms_norm_eps)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """Returns the backbone's sizes under the names of a Qwen3 config."""
        config = load_config(checkpoint)
        return config_fields(config.talker, config.model_type, config.codec.codebook_size)

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Loads the backbone's fused projections and the shared parts."""
        targets = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        try:
            tensors = read_tensors(checkpoint / TALKER_FILE)
        except (FileNotFoundError, ValueError) as error:
            raise ConfigError(str(error)) from error
        ParameterLoader(targets).load_all(tensors.items(), checkpoint / TALKER_FILE)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states."""
        return run_layers(self.layers, self.norm, positions, inputs_embeds)
