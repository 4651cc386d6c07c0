"""The talker without vLLM: the same weights and order of operations as in vLLM's layers.

Letters: N positions, D hidden size.
"""

from __future__ import annotations

from pathlib import Path

import torch

from cantata.contract.model.plain_talker import PlainTalkerOptions
from cantata.contract.model.row_products import RowProduct, is_packed
from cantata_layers.code_predictor import PREDICTOR_STACKS
from cantata_layers.parameters import ParameterLoader
from cantata_layers.plain_qwen3 import PlainQwen3, PlainQwen3Talker
from cantata_models.qwen3_tts.config import Qwen3TtsConfig, load_config
from cantata_models.qwen3_tts.talker_front import NAMES, Qwen3TalkerFront


class PlainQwen3TtsTalker(Qwen3TalkerFront, PlainQwen3Talker):
    """The talker in plain torch."""

    sampled_hidden: torch.Tensor

    def __init__(self, config: Qwen3TtsConfig, options: PlainTalkerOptions) -> None:
        self.max_positions = min(options.max_model_len, config.talker.max_positions)
        super().__init__(config, self.max_positions)
        self.hidden_size = config.talker.hidden_size
        self.backbone = PlainQwen3(config.talker, options.kernels)

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Load the parameters from the talker's part of a published checkpoint."""
        own = {name.removeprefix("backbone."): p for name, p in self.named_parameters()}
        ParameterLoader(own, NAMES, PREDICTOR_STACKS).load_all(NAMES.read(checkpoint), checkpoint)
        self.code_predictor.project_embeddings()
        self.eval().requires_grad_(False)


def load_plain_talker(checkpoint: Path, options: PlainTalkerOptions) -> PlainQwen3TtsTalker:
    """Return the talker of a checkpoint folder.

    Raises:
        ConfigError: the folder holds no such checkpoint.
    """
    config = load_config(checkpoint)
    with options.building():
        talker = PlainQwen3TtsTalker(config, options)
    talker.load_checkpoint(checkpoint)
    if is_packed(talker.backbone.norm.weight):
        talker.backbone.multiply_by(RowProduct)
    return talker
