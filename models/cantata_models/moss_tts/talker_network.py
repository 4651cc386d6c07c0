"""All networks of a talker, and the loading of their weights from a published checkpoint.

Letters: N rows, L rows of a prompt, D hidden size, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.data.errors import ConfigError
from cantata_layers.checkpoint import read_tensors
from cantata_layers.parameters import ParameterLoader
from cantata_layers.weights import WeightMap
from cantata_models.moss_tts.config import (
    MossConfig,
)
from cantata_models.moss_tts.frame_network import FrameNetwork

EMBEDDINGS, STOP_HEAD = "frames.audio_embeddings", "frames.local_text_lm_head.weight"
NAMES = WeightMap(
    {
        "transformer.{}": "transformer.{}",
        # One tensor here; a checkpoint has one per codebook.
        "audio_embeddings.{}.weight": f"{EMBEDDINGS}.{{}}",
        "{}": "frames.{}",
    }
)
TIED_HEADS = ("text_lm_head.", "audio_lm_heads.")
"""Heads that are tables of embeddings; a checkpoint may hold them a second time."""
UNUSED = "local_transformer.wte."
"""A table that the local transformer does not have, although a checkpoint may hold it."""


class MossBackbone(Protocol):
    """The part in which both models differ; a torch module."""

    @property
    def text_table(self) -> torch.Tensor:
        """[tokens, D]: the embeddings of text tokens."""
        ...

    def __call__(self, positions: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states."""
        ...


class TalkerNetwork(nn.Module):
    """The backbone, and what makes frames of its hidden states."""

    transformer: MossBackbone

    def __init__(self, config: MossConfig, transformer: MossBackbone) -> None:
        super().__init__()
        self._config = config
        self.transformer = transformer
        self.frames = FrameNetwork(config)

    def embed_prompt(self, rows: torch.Tensor) -> torch.Tensor:
        """[L, 1 + Q] rows of a prompt -> [L, D]. The pad code adds nothing."""
        embedded = functional.embedding(rows[:, 0], self.transformer.text_table)
        spoken = (rows[:, 1] != self._config.pad_code).nonzero().squeeze(1)
        return embedded.index_add(0, spoken, self.frames.embed(rows[spoken, 1:]))

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Load the parameters from a published checkpoint.

        Raises:
            ConfigError: a tensor is missing or unknown, its shape differs, or a head is not the
                table of embeddings that it should be.
        """
        loader = ParameterLoader(dict(self.named_parameters()), NAMES, [EMBEDDINGS])
        heads: dict[str, torch.Tensor] = {}
        for name, tensor in read_tensors(checkpoint):
            if name.startswith(TIED_HEADS):
                heads[name.removesuffix(".weight")] = tensor
            elif not name.startswith(UNUSED):
                loader.load(name, tensor)
        if self._config.stop_is_text:
            self._make_stop_head()
            loader.missing.discard(STOP_HEAD)
        loader.check_complete(checkpoint)
        self._check_tied(heads, checkpoint)

    def _make_stop_head(self) -> None:
        """Make the stop head of the embeddings of two text tokens: to go on, and to stop."""
        tokens = self._config.tokens
        table = self.transformer.text_table.data
        stop_head = self.frames.local_text_lm_head.weight
        stop_head.data.copy_(table[[tokens.assistant_slot, tokens.audio_end]])

    def _check_tied(self, heads: Mapping[str, torch.Tensor], checkpoint: Path) -> None:
        tables = {
            f"audio_lm_heads.{book}": table
            for book, table in enumerate(self.frames.audio_embeddings.data)
        }
        tables["text_lm_head"] = self.transformer.text_table.data
        for name, head in heads.items():
            table = tables.get(name)
            if table is None or not torch.equal(head.to(table), table):
                raise ConfigError(f"{checkpoint}: {name} is not its table of embeddings")
