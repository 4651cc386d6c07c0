"""The published names of the stacks' tensors, in both layouts, and their way into the talker.

S2 has safetensors, S1 one pickle. A layer has `attention.{wqkv, wo, q_norm, k_norm}`,
`feed_forward.{w1, w2, w3}` and two norms.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

from cantata.contract.data.errors import ConfigError
from cantata_layers.checkpoint import read_pickle, read_tensors
from cantata_layers.parameters import ParameterLoader
from cantata_layers.qwen3_config import Qwen3Stack
from cantata_models.fish_speech.config import FishConfig, Layout
from cantata_models.fish_speech.networks.rotary import pairs_as_halves

S1_FILE = "model.pth"
SLOW, FAST = "text_model.model.", "audio_decoder."
"""What S2's names begin with."""
CODEBOOKS = "codebook_embeddings."
S1_FAST = ("fast_embeddings.", "fast_layers.", "fast_norm.", "fast_output.", "fast_project_in.")
DERIVED = ("freqs_cis", "causal_mask")
"""In the names of tables that a pickle may hold too; they follow from the config."""
TRAINED = "model."
"""What S1's names begin with in a pickle that its training saved."""
HEARING = "audio_"
"""What the names begin with of S1's tensors that understand sound; speech needs none."""
IN_LAYER = {
    "attention.wo": "o_proj",
    "attention.q_norm": "q_norm",
    "attention.k_norm": "k_norm",
    "feed_forward.w1": "gate_proj",
    "feed_forward.w2": "down_proj",
    "feed_forward.w3": "up_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
NORMS = ("q_norm", "k_norm")
OF_ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj", *NORMS)
OF_PERCEPTRON = ("gate_proj", "up_proj", "down_proj")
Tensors = Iterator[tuple[str, torch.Tensor]]


def load_parameters(talker: nn.Module, checkpoint: Path, config: FishConfig) -> None:
    """Fill a talker: `embeddings`, `head`, `codebook_embeddings`, `layers`, `norm`, `fast`.

    Raises:
        ConfigError: a file is missing or damaged, or a tensor is missing, unknown, or of another
            shape.
    """
    stacks = {"layers": config.slow_norms, "fast.layers": config.fast_norms}
    for name, normed in stacks.items():
        if normed is False:
            _leave_out_norms(talker.get_submodule(name))
    loader, codes = ParameterLoader(dict(talker.named_parameters())), talker.get_buffer("tokens")
    expected = set(loader.missing)
    head = "embeddings.weight" if config.tied else "output.weight"
    for name, tensor in _tensors(checkpoint, config):
        if name == head:
            loader.load("head.weight", _rows(tensor, codes, checkpoint))
        if name not in ("output.weight", head) or name == "embeddings.weight":
            loader.load(name, tensor)
    for name, normed in stacks.items():
        norms = {found for found in expected if _is_norm_of(name, found)}
        if normed is None and norms <= loader.missing:
            _leave_out_norms(talker.get_submodule(name))
            loader.missing -= norms
    loader.check_complete(checkpoint)


def _is_norm_of(stack: str, parameter: str) -> bool:
    """Whether a parameter is a norm of a stack's queries or keys."""
    return parameter.startswith(f"{stack}.") and parameter.split(".")[-2] in NORMS


def _leave_out_norms(layers: nn.Module) -> None:
    """Let a stack's queries and keys be as they are."""
    for layer in layers.children():
        # vLLM's layers have a module for attention.
        attention = getattr(layer, "self_attn", layer)
        for norm in NORMS:
            setattr(attention, norm, nn.Identity())


def _rows(table: torch.Tensor, tokens: torch.Tensor, where: Path) -> torch.Tensor:
    if len(table) <= int(tokens.max()):
        raise ConfigError(f"{where}: {len(table)} rows have no token {int(tokens.max())}")
    return table[tokens.to(table.device)]


def _tensors(checkpoint: Path, config: FishConfig) -> Tensors:
    """Yield tensors under the talker's names."""
    read = _read_s2 if config.layout is Layout.S2 else _read_s1
    for name, tensor in read(checkpoint):
        if any(part in name for part in DERIVED):
            continue
        fast = name.startswith("fast.")
        if ".layers." in f".{name}":
            stack = config.fast if fast else config.slow
            yield from _layer_tensors(name, tensor, stack, wrapped=not fast)
        else:
            yield name, tensor


def _read_s2(checkpoint: Path) -> Tensors:
    yield from read_tensors(checkpoint, SLOW)
    for name, tensor in read_tensors(checkpoint, FAST):
        yield name if name.startswith(CODEBOOKS) else f"fast.{name}", tensor


def _read_s1(checkpoint: Path) -> Tensors:
    for saved, tensor in read_pickle(checkpoint / S1_FILE):
        name = saved.removeprefix(TRAINED)
        if name.startswith(HEARING):
            continue
        fast = name.startswith(S1_FAST)
        yield f"fast.{name.removeprefix('fast_')}" if fast else name, tensor


def _layer_tensors(name: str, tensor: torch.Tensor, stack: Qwen3Stack, *, wrapped: bool) -> Tensors:
    """Yield one tensor of a layer, or its parts.

    Args:
        name: under the talker's name for the stack.
        tensor: as published.
        stack: its sizes.
        wrapped: whether the layer has modules for attention and perceptron (vLLM's has).
    """
    before, _, inner = name.partition("layers.")
    index, _, part = inner.removesuffix(".weight").partition(".")
    if part == "attention.wqkv":
        queries, keys = stack.heads * stack.head_dim, stack.kv_heads * stack.head_dim
        if len(tensor) != queries + 2 * keys:
            raise ConfigError(f"{name} of {list(tensor.shape)} does not fit the config's heads")
        split = torch.split(tensor, [queries, keys, keys])
        parts = dict(zip(("q_proj", "k_proj", "v_proj"), split, strict=True))
    elif part in IN_LAYER:
        parts = {IN_LAYER[part]: tensor}
    else:
        raise ConfigError(f"the talker has no parameter {name}")
    for ours, value in parts.items():
        if not wrapped:
            # WHY: vLLM's rotation knows pairs; that of the fast layers, halves.
            if ours in ("q_proj", "k_proj"):
                value = pairs_as_halves(value, stack.head_dim)
            elif ours in NORMS:
                value = pairs_as_halves(value[:, None], stack.head_dim)[:, 0]
            yield f"{before}layers.{index}.{ours}.weight", value
            continue
        module = "self_attn." if ours in OF_ATTENTION else "mlp." if ours in OF_PERCEPTRON else ""
        yield f"{before}layers.{index}.{module}{ours}.weight", value
