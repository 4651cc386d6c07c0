"""solo's talker without vLLM, for one request at a time. It uses the same weights, kernels and
order of operations as the served talker's layers, so its output has the same bits.

Letters: T positions, D hidden size, H query heads, K key-value heads, E head size.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.plain_talker import AttentionMemory, BackboneKernels, PlainTalker
from cantata_models.solo.checkpoint import TALKER_FILE, Tensors, read_tensors
from cantata_models.solo.config import SoloConfig, TalkerConfig, load_config
from cantata_models.solo.networks.packed_product import PackedProduct
from cantata_models.solo.talker_front import TalkerFront


class _TalkerLayer:
    """Attention and feed-forward with fused projections, each after a norm.

    Args:
        tensors: this layer's tensors from the checkpoint.
        index: the layer's index in the attention memory.
    """

    def __init__(
        self, tensors: Tensors, config: TalkerConfig, kernels: BackboneKernels, index: int
    ) -> None:
        def product(*names: str) -> PackedProduct:
            return PackedProduct(torch.cat([tensors[f"{name}.weight"] for name in names]))

        attention = [f"self_attn.{part}_proj" for part in "qkv"]
        self._qkv, self._out = product(*attention), product("self_attn.o_proj")
        self._gate_up = product("mlp.gate_proj", "mlp.up_proj")
        self._down = product("mlp.down_proj")
        self._norms = {
            name: tensors[f"{name}.weight"]
            for name in (
                "input_layernorm",
                "post_attention_layernorm",
                "self_attn.q_norm",
                "self_attn.k_norm",
            )
        }
        self._config, self._kernels, self._index = config, kernels, index

    def __call__(
        self,
        rows: torch.Tensor,
        residual: torch.Tensor | None,
        positions: torch.Tensor,
        turns: torch.Tensor,
        memory: AttentionMemory,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """[T, D] each. The update is returned apart from `residual`; the next norm adds the two."""
        kernels, epsilon = self._kernels, self._config.rms_norm_eps
        before = self._norms["input_layernorm"]
        if residual is None:
            residual, rows = rows, kernels.rms_norm(rows, before, epsilon)
        else:
            kernels.add_rms_norm(rows, residual, before, epsilon)
        rows = self._attend(rows, positions, turns, memory)
        kernels.add_rms_norm(rows, residual, self._norms["post_attention_layernorm"], epsilon)
        gate, up = self._gate_up(rows).chunk(2, dim=-1)
        return self._down(functional.silu(gate) * up), residual

    def _attend(
        self,
        rows: torch.Tensor,
        positions: torch.Tensor,
        turns: torch.Tensor,
        memory: AttentionMemory,
    ) -> torch.Tensor:
        c = self._config
        sizes = [heads * c.head_dim for heads in (c.heads, c.kv_heads, c.kv_heads)]
        queries, keys, values = torch.split(self._qkv(rows), sizes, dim=-1)
        queries, keys = self._normalise(queries, "q_norm"), self._normalise(keys, "k_norm")
        self._kernels.rotate(positions, queries, keys, c.head_dim, turns)
        shape = (len(rows), -1, c.head_dim)
        attended = memory.attend(
            self._index, queries.view(shape), keys.view(shape), values.view(shape)
        )
        return self._out(attended)

    def _normalise(self, rows: torch.Tensor, norm: str) -> torch.Tensor:
        by_head = rows.view(len(rows), -1, self._config.head_dim)
        weight = self._norms[f"self_attn.{norm}"]
        return self._kernels.rms_norm(by_head, weight, self._config.rms_norm_eps).view(rows.shape)


class PlainSoloTalker(TalkerFront, PlainTalker):
    """The talker for one listener, without vLLM."""

    sampled_hidden: torch.Tensor

    def __init__(self, config: SoloConfig, tensors: Tensors, kernels: BackboneKernels) -> None:
        super().__init__(config)
        self.hidden_size = config.talker.hidden_size
        self._backbone, self._kernels = config.talker, kernels
        self._layers = [
            _TalkerLayer(_select_part(tensors, f"layers.{index}."), config.talker, kernels, index)
            for index in range(config.talker.layers)
        ]
        self._norm = tensors["norm.weight"]
        self._turns = _turns(config.talker)
        for name, module in self.named_children():
            _fill(module, _select_part(tensors, f"{name}."))

    def attention(self, positions: int) -> AttentionMemory:
        """Returns memory for one request of at most `positions` positions."""
        c = self._backbone
        return self._kernels.attention(c.layers, c.heads, c.kv_heads, c.head_dim, positions)

    def forward_rows(
        self, rows: torch.Tensor, positions: torch.Tensor, memory: AttentionMemory
    ) -> torch.Tensor:
        """[T, D] rows at [T] positions -> [T, D] hidden states."""
        residual: torch.Tensor | None = None
        for layer in self._layers:
            rows, residual = layer(rows, residual, positions, self._turns, memory)
        assert residual is not None, "a backbone has layers"
        self._kernels.add_rms_norm(rows, residual, self._norm, self._backbone.rms_norm_eps)
        return rows


def load_plain_talker(checkpoint: Path, kernels: BackboneKernels) -> PlainSoloTalker:
    """Returns the talker of a checkpoint folder.

    Raises:
        ConfigError: the folder holds no solo checkpoint.
    """
    config = load_config(checkpoint)
    try:
        return PlainSoloTalker(config, read_tensors(checkpoint / TALKER_FILE), kernels)
    except (FileNotFoundError, KeyError, RuntimeError, ValueError) as error:
        raise ConfigError(f"{checkpoint}: {error}") from error


def _select_part(tensors: Tensors, prefix: str) -> Tensors:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _fill(module: nn.Module, tensors: Tensors) -> None:
    module.load_state_dict(tensors, assign=True)
    module.eval().requires_grad_(False)


def _turns(config: TalkerConfig) -> torch.Tensor:
    """[positions, E] float32: cosines, then sines, computed as in vLLM's rotary layer."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float) / config.head_dim
    positions = torch.arange(config.max_positions, dtype=torch.float)
    angles = torch.outer(positions, 1.0 / config.rope_theta**exponents)
    return torch.cat([angles.cos(), angles.sin()], dim=-1)
