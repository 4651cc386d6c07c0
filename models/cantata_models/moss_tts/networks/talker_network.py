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
from cantata_layers.parameters import copy_tensor, load_tensor, missing_parameters
from cantata_models.moss_tts.config.shared import MossConfig
from cantata_models.moss_tts.networks.frame_network import FrameNetwork

BACKBONE = "transformer."
"""What the backbone's tensors are called, here as in a checkpoint."""
FRAMES = "frames."
EMBEDDINGS = "audio_embeddings"
"""One tensor here; a checkpoint has one per codebook."""
STOP_HEAD = "local_text_lm_head.weight"
TIED_HEADS = ("text_lm_head.", "audio_lm_heads.")
"""Heads that are tables of embeddings; a checkpoint may hold them a second time."""
UNUSED = "local_transformer.wte."
"""A table that the local transformer does not have, although a checkpoint may hold it."""


class Backbone(Protocol):
    """The part in which both models differ; a torch module."""

    @property
    def text_table(self) -> torch.Tensor:
        """[tokens, D]: the embeddings of text tokens."""
        ...

    def __call__(self, positions: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states."""
        ...


class TalkerNetwork(nn.Module):
    """The backbone, and what makes frames of its hidden states.

    Args:
        config: of the checkpoint.
        transformer: the backbone.
    """

    transformer: Backbone

    def __init__(self, config: MossConfig, transformer: Backbone) -> None:
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
        targets = dict(self.named_parameters())
        books = {f"{EMBEDDINGS}.{book}" for book in range(self._config.num_codebooks)}
        loaded, heads = set[str](), dict[str, torch.Tensor]()
        for name, tensor in read_tensors(checkpoint):
            if name.startswith(TIED_HEADS):
                heads[name.removesuffix(".weight")] = tensor
            elif not name.startswith(UNUSED):
                loaded.add(self._load(targets, name, tensor))
        if self._config.stop_is_text:
            self._make_stop_head()
            loaded.add(FRAMES + STOP_HEAD)
        missing = missing_parameters(targets, loaded) - {FRAMES + EMBEDDINGS} | books - loaded
        if missing:
            raise ConfigError(f"{checkpoint}: lacks weights of {', '.join(sorted(missing))}")
        self._check_tied(heads, checkpoint)

    def _load(self, targets: Mapping[str, torch.Tensor], name: str, tensor: torch.Tensor) -> str:
        """Copy a checkpoint's tensor; returns the parameter's name, or the codebook's."""
        if not name.startswith(f"{EMBEDDINGS}."):
            return load_tensor(
                targets, name if name.startswith(BACKBONE) else FRAMES + name, tensor
            )
        book = name.removesuffix(".weight")
        try:
            copy_tensor(self.frames.audio_embeddings.data[int(book.split(".")[1])], tensor)
        except (IndexError, ValueError) as error:
            raise ConfigError(
                f"{name} of {list(tensor.shape)} does not fit the talker: {error}"
            ) from error
        return book

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
