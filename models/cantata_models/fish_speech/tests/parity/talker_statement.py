"""The talker in plain PyTorch, in float64: all scores of an utterance from its frames.

Letters: L positions, T frames, Q codebooks, D width, V tokens.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch.nn import functional

SIZES = ("n_layer", "n_head", "n_local_heads", "head_dim")


@dataclass(frozen=True, slots=True)
class SpokenBefore:
    """An utterance as it was spoken."""

    tokens: torch.Tensor
    """[T] int64 what the slow stack chose."""
    codes: torch.Tensor
    """[T, Q] int64; code 0 of a token that is not semantic is 0."""


class TalkerStatement:
    """A checkpoint's talker.

    Args:
        checkpoint: its folder, in either layout.
    """

    def __init__(self, checkpoint: Path) -> None:
        config = json.loads((checkpoint / "config.json").read_text())
        self.is_s2 = config["model_type"] == "fish_qwen3_omni"
        weights = self._s2(checkpoint, config) if self.is_s2 else self._s1(checkpoint, config)
        self._weights = {name: tensor.double() for name, tensor in weights.items()}
        names = _special_tokens(checkpoint)
        self.begin, self.end = names["<|semantic:0|>"], names["<|im_end|>"]

    def _s2(self, checkpoint: Path, config: dict[str, Any]) -> dict[str, torch.Tensor]:
        self._slow, fast = config["text_config"], config["audio_decoder_config"]
        self._fast = {key: fast[key] for key in SIZES}
        self.size, self.books = fast["vocab_size"], fast["num_codebooks"]
        self._scaled, self.first_residuals = True, self.size
        return dict(load_file(checkpoint / "model.safetensors"))

    def _s1(self, checkpoint: Path, config: dict[str, Any]) -> dict[str, torch.Tensor]:
        self._slow = config
        self._fast = {key: config[f"fast_{key}"] for key in SIZES[1:]}
        self._fast["n_layer"] = config["n_fast_layer"]
        self.size, self.books = config["codebook_size"], config["num_codebooks"]
        self._scaled, self.first_residuals = config["scale_codebook_embeddings"], 1024
        return dict(torch.load(checkpoint / "model.pth", weights_only=True))

    def scores(
        self, prompt: list[int], frames: Sequence[tuple[int, torch.Tensor]], said: SpokenBefore
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What every choice of an utterance was made from.

        Args:
            prompt: tokens, less those of frames.
            frames: those that stand there, [C, Q], and in front of which of them, in order.
            said: the utterance.

        Returns:
            [T + 1, V] scores of tokens, -inf where one cannot be chosen, and [T, Q - 1, codes].
        """
        first, last = self.slow_scores(prompt, frames, said)
        scores = [self.frame_scores(last[t], said.codes[t]) for t in range(len(said.codes))]
        return first, torch.stack(scores) if scores else torch.zeros(0)

    def slow_scores(
        self, prompt: list[int], frames: Sequence[tuple[int, torch.Tensor]], said: SpokenBefore
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """[T + 1, V] as `scores`, and [T + 1, D]: what the fast stack takes for each frame."""
        rows = self.prompt_rows(prompt, frames)
        length = len(rows)
        rows = torch.cat([rows, self._frame_rows(said)])
        prefix = "text_model.model." if self.is_s2 else ""
        hidden = self._stack(rows, prefix, self._slow)[length - 1 :]
        normed = self._norm(hidden, f"{prefix}norm")
        tied = self._slow["tie_word_embeddings"]
        head = self._weights[f"{prefix}embeddings.weight" if tied else "output.weight"]
        first = normed @ head.T
        if self.is_s2:
            barred = torch.ones(len(head), dtype=torch.bool)
            barred[self.begin : self.begin + self.size] = False
            barred[self.end] = False
            first[:, barred] = -torch.inf
        return first, normed if self.is_s2 else hidden

    def prompt_rows(
        self, prompt: list[int], frames: Sequence[tuple[int, torch.Tensor]]
    ) -> torch.Tensor:
        """[L, D] input rows of a prompt."""
        table = self._weights[
            "text_model.model.embeddings.weight" if self.is_s2 else "embeddings.weight"
        ]
        rows = table[torch.tensor(prompt)]
        for place, codes in reversed(frames):
            made = self._frame_rows(SpokenBefore(codes[:, 0] + self.begin, codes))
            rows = torch.cat([rows[:place], made, rows[place:]])
        return rows

    def _frame_rows(self, said: SpokenBefore) -> torch.Tensor:
        """[T, D]."""
        slow, books = ("text_model.model.", "audio_decoder.") if self.is_s2 else ("", "")
        rows = []
        for token, codes in zip(said.tokens.tolist(), said.codes.tolist(), strict=True):
            row = self._weights[f"{slow}embeddings.weight"][token]
            if self.begin <= token < self.begin + self.size:
                for book, code in enumerate(codes):
                    table = self._weights[f"{books}codebook_embeddings.weight"]
                    row = row + table[code + book * self.size]
                if self._scaled:
                    row = row / math.sqrt(len(codes) + 1)
            rows.append(row)
        return torch.stack(rows) if rows else torch.zeros(0, self._slow["dim"]).double()

    def frame_scores(self, hidden: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """[D] and a frame [Q] -> [Q - 1, codes]: of each code behind the first, by those in front
        of it."""
        prefix = "audio_decoder." if self.is_s2 else "fast_"
        if f"{prefix}project_in.weight" in self._weights:
            weight, bias = (
                self._weights[f"{prefix}project_in.{part}"] for part in ("weight", "bias")
            )
            hidden = weight @ hidden + bias
        table = self._weights[f"{prefix}embeddings.weight"]
        rows = torch.cat([hidden[None], table[codes[:-1]]])
        out = self._norm(self._stack(rows, prefix, self._fast), f"{prefix}norm")
        scores = out[1:] @ self._weights[f"{prefix}output.weight"].T
        return scores[:, : self.first_residuals]

    def _stack(self, x: torch.Tensor, prefix: str, sizes: dict[str, Any]) -> torch.Tensor:
        """[L, D] -> [L, D], before the last norm."""
        turn = _turns(len(x), sizes["head_dim"], self._slow["rope_base"])
        for index in range(sizes["n_layer"]):
            layer = f"{prefix}layers.{index}"
            x = x + self._attention(self._norm(x, f"{layer}.attention_norm"), layer, sizes, turn)
            inner = self._norm(x, f"{layer}.ffn_norm")
            gate, down, up = (self._weights[f"{layer}.feed_forward.w{i}.weight"] for i in (1, 2, 3))
            x = x + (functional.silu(inner @ gate.T) * (inner @ up.T)) @ down.T
        return x

    def _attention(
        self, x: torch.Tensor, layer: str, sizes: dict[str, Any], turn: torch.Tensor
    ) -> torch.Tensor:
        heads, shared, width = sizes["n_head"], sizes["n_local_heads"], sizes["head_dim"]
        joined = x @ self._weights[f"{layer}.attention.wqkv.weight"].T
        q = joined[:, : heads * width].view(len(x), heads, width)
        k, v = joined[:, heads * width :].view(len(x), 2, shared, width).unbind(1)
        if f"{layer}.attention.q_norm.weight" in self._weights:
            q = self._norm(q, f"{layer}.attention.q_norm")
            k = self._norm(k, f"{layer}.attention.k_norm")
        q, k = _turned(q, turn), _turned(k, turn)
        k, v = (each.repeat_interleave(heads // shared, dim=1) for each in (k, v))
        scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(width)
        later = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
        mixed = torch.einsum("hqk,khd->qhd", scores.masked_fill(later, -torch.inf).softmax(-1), v)
        return mixed.reshape(len(x), -1) @ self._weights[f"{layer}.attention.wo.weight"].T

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        epsilon: float = self._slow["norm_eps"]
        scale = (x.square().mean(-1, keepdim=True) + epsilon).sqrt()
        return x / scale * self._weights[f"{name}.weight"]


def _special_tokens(checkpoint: Path) -> dict[str, int]:
    path = checkpoint / "special_tokens.json"
    if path.exists():
        listed: dict[str, int] = json.loads(path.read_text())
        return listed
    added = json.loads((checkpoint / "tokenizer.json").read_text())["added_tokens"]
    return {token["content"]: token["id"] for token in added}


def _turns(positions: int, width: int, base: float) -> torch.Tensor:
    """[L, width / 2] complex: the table's two columns, each rounded to bfloat16."""
    steps = 1.0 / base ** (torch.arange(0, width, 2).float() / width)
    angles = torch.arange(positions).float()[:, None] * steps
    cos, sin = (part.bfloat16().double() for part in (angles.cos(), angles.sin()))
    return torch.complex(cos, sin)


def _turned(x: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
    """[L, H, width]: neighbouring channels are a complex number's parts."""
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * turn[:, None]).flatten(-2)
