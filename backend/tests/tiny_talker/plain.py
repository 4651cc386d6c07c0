"""The tiny talker without vLLM."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

from cantata.contract.model.plain_talker import AttentionMemory, PlainTalker, PlainTalkerOptions
from cantata.contract.model.row_products import RowProduct, is_packed
from cantata_layers.plain_qwen3 import PlainQwen3
from cantata_layers.qwen3_config import Qwen3Stack
from tiny_talker.checkpoint import (
    CODEBOOK_SIZE,
    HEAD_DIM,
    HIDDEN,
    INTERMEDIATE,
    LAYERS,
    MAX_POSITIONS,
)
from tiny_talker.front import TinyTalkerFront

STACK = Qwen3Stack(
    hidden_size=HIDDEN,
    layers=LAYERS,
    heads=2,
    kv_heads=1,
    head_dim=HEAD_DIM,
    intermediate_size=INTERMEDIATE,
    vocab_size=CODEBOOK_SIZE + 1,
    rms_norm_eps=1e-6,
    rope_theta=10_000.0,
    max_positions=MAX_POSITIONS,
)


class PlainTinyTalker(TinyTalkerFront, PlainTalker):
    """The same weights in plain torch."""

    hidden_size = HIDDEN
    sampled_hidden: torch.Tensor

    def __init__(self, options: PlainTalkerOptions) -> None:
        super().__init__()
        self.max_positions = min(options.max_model_len, MAX_POSITIONS)
        self.backbone = PlainQwen3(STACK, options.kernels)

    def load_checkpoint(self, checkpoint: Path) -> None:
        own = {name.removeprefix("backbone."): p for name, p in self.named_parameters()}
        weights = load_file(checkpoint / "model.safetensors")
        assert own.keys() == weights.keys()
        for name, parameter in own.items():
            parameter.data.copy_(weights[name])

    def attention(self, requests: int, positions: int) -> AttentionMemory:
        return self.backbone.attention(requests, positions)

    def forward_rows(
        self, rows: torch.Tensor, positions: torch.Tensor, memory: AttentionMemory
    ) -> torch.Tensor:
        hidden: torch.Tensor = self.backbone(rows, positions, memory)
        return hidden


def load_plain_talker(checkpoint: Path, options: PlainTalkerOptions) -> PlainTinyTalker:
    """The function that a pipeline names."""
    with options.building():
        talker = PlainTinyTalker(options)
    talker.load_checkpoint(checkpoint)
    talker.requires_grad_(False)
    if is_packed(talker.backbone.norm.weight):
        talker.backbone.multiply_by(RowProduct)
    return talker
