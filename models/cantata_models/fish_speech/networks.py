"""The fast stack, both stacks' rotation, and their published tensors' way into the talker.

The fast stack makes the other codes of a frame from a position's hidden state and code 0. Position
0 takes the hidden state, position 1 code 0, position i + 1 code i; position i's scores are code
i's. All codebooks share one table and one head. The stack is Qwen3's, in most checkpoints without
norms of queries and keys.

Rotary positions turn neighbouring channels, by cosines and sines rounded to bfloat16, whatever the
weights' precision (Su et al., 2021, for the rotation). S2 has safetensors, S1 one pickle. A layer
has `attention.{wqkv, wo, q_norm, k_norm}`, `feed_forward.{w1, w2, w3}` and two norms.

Letters: B rows, T positions, E head size, R requests, D the slow stack's width, H the fast one's, V
codes, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.row_products import RowLinear
from cantata_layers.checkpoint import read_pickle, read_tensors
from cantata_layers.code_predictor import (
    ChooseCode,
    PredictorLayer,
    PredictorRmsNorm,
    run_predictor_layers,
)
from cantata_layers.exact_layers import Rotation
from cantata_layers.parameters import ParameterLoader
from cantata_layers.qwen3_config import Qwen3Stack
from cantata_models.fish_speech.config import FishConfig, FishLayout


def rounded(table: torch.Tensor) -> torch.Tensor:
    """[...] to the nearest bfloat16, in its own dtype."""
    return table.to(torch.bfloat16).to(table.dtype)


def tables(positions: int, head_dim: int, theta: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of positions 0.., each [positions, E / 2] float32."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    frequencies = 1.0 / theta**exponents
    angles = torch.outer(torch.arange(positions, dtype=torch.float32), frequencies)
    return rounded(angles.cos()), rounded(angles.sin())


def pairs_as_halves(rows: torch.Tensor, head_dim: int) -> torch.Tensor:
    """Reorder the rows that make queries or keys, [heads * E, inputs].

    The checkpoints turn channels 2i and 2i + 1 of a head, most layers here i and i + E / 2. A
    product of a query and a key is the same in every order of their channels.
    """
    by_pair = rows.view(-1, head_dim // 2, 2, rows.shape[1])
    return by_pair.transpose(1, 2).reshape(rows.shape)


class RoundedRotation(Rotation):
    """`Rotation` by rounded cosines and sines."""

    def __init__(self, positions: torch.Tensor, frames: int, inverse_frequencies: torch.Tensor):
        super().__init__(positions, frames, inverse_frequencies)
        self._cos, self._sin = rounded(self._cos), rounded(self._sin)


class FastDecoder(nn.Module):
    """Completes frames.

    Args:
        config: of the stack; `vocab_size` is V.
        slow_size: D; where it is not H, a projection precedes the stack.
        num_codebooks: Q.
        max_codes: of the codes after code 0, only the first so many can be chosen.
    """

    cos: torch.Tensor
    sin: torch.Tensor

    def __init__(
        self, config: Qwen3Stack, slow_size: int, num_codebooks: int, max_codes: int
    ) -> None:
        super().__init__()
        self._config = config
        self._num_codebooks, self._max_codes = num_codebooks, max_codes
        size = config.hidden_size
        self.project_in = RowLinear(slow_size, size) if slow_size != size else nn.Identity()
        self.embeddings = nn.Embedding(config.vocab_size, size)
        self.layers = nn.ModuleList(PredictorLayer(config) for _ in range(config.layers))
        self.norm = PredictorRmsNorm(size, config.rms_norm_eps)
        self.output = RowLinear(size, config.vocab_size, bias=False)
        for name, table in zip(
            ("cos", "sin"), tables(num_codebooks, config.head_dim, config.rope_theta), strict=True
        ):
            self.register_buffer(name, torch.cat((table, table), dim=-1), persistent=False)

    def forward(
        self, hidden: torch.Tensor, code0: torch.Tensor, choose: ChooseCode
    ) -> torch.Tensor:
        """Complete frames.

        Args:
            hidden: [R, D].
            code0: [R] int64, below V.
            choose: draws the codes of one codebook.

        Returns:
            [R, Q] int64.
        """
        config, requests = self._config, len(hidden)
        shape = (config.layers, 2, requests, config.kv_heads, self._num_codebooks, config.head_dim)
        cache = hidden.new_empty(shape)
        codes = [code0]
        x = torch.stack((self.project_in(hidden), self.embeddings(code0)), dim=1)
        start = 0
        for book in range(1, self._num_codebooks):
            last = run_predictor_layers(
                self.layers, self.norm, x, start, (self.cos, self.sin), cache
            )
            codes.append(choose(self.output(last)[:, : self._max_codes], book))
            start += x.shape[1]
            x = self.embeddings(codes[-1])[:, None]
        return torch.stack(codes, dim=1)


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
            loader.load("head.weight", _look_up(tensor, codes, checkpoint))
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


def _look_up(table: torch.Tensor, tokens: torch.Tensor, where: Path) -> torch.Tensor:
    if len(table) <= int(tokens.max()):
        raise ConfigError(f"{where}: {len(table)} rows have no token {int(tokens.max())}")
    return table[tokens.to(table.device)]


def _tensors(checkpoint: Path, config: FishConfig) -> Tensors:
    """Yield tensors under the talker's names."""
    read = _read_s2 if config.layout is FishLayout.S2 else _read_s1
    for name, tensor in read(checkpoint):
        if any(part in name for part in DERIVED):
            continue
        fast = name.startswith("fast.")
        if ".layers." in f".{name}":
            stack = config.fast if fast else config.slow
            yield from _iterate_layer_tensors(name, tensor, stack, wrapped=not fast)
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


def _iterate_layer_tensors(
    name: str, tensor: torch.Tensor, stack: Qwen3Stack, *, wrapped: bool
) -> Tensors:
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
