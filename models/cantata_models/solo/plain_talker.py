"""solo's talker without vLLM. It uses the same weights, kernels and order of operations as the
served talker's layers, so its output has the same bits."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.plain_talker import PlainTalkerOptions
from cantata.contract.model.row_products import Product
from cantata_layers.parameters import ParameterLoader
from cantata_layers.plain_qwen3 import PlainQwen3, PlainQwen3Talker
from cantata_models.solo.checkpoint import TALKER_FILE, Tensors, read_tensors
from cantata_models.solo.config import SoloConfig, load_config
from cantata_models.solo.networks.packed_product import PackedProduct
from cantata_models.solo.talker_front import TalkerFront


class PlainSoloTalker(TalkerFront, PlainQwen3Talker):
    """The talker in plain torch; its backbone in the dtype that it is served in."""

    sampled_hidden: torch.Tensor

    def __init__(self, config: SoloConfig, options: PlainTalkerOptions) -> None:
        super().__init__(config)
        self.hidden_size = config.talker.hidden_size
        self.max_positions = min(options.max_model_len, config.talker.max_positions)
        self.backbone = PlainQwen3(config.talker, options.kernels)

    def load_tensors(self, tensors: Tensors, where: Path) -> None:
        """Fill the backbone's fused projections and the shared parts. Raises ConfigError: a tensor
        is missing, unknown or misshapen."""
        targets = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        own = {name.removeprefix("backbone."): target for name, target in targets.items()}
        own.pop("rotary_table")  # computed
        ParameterLoader(own).load_all(tensors.items(), where)
        self.eval().requires_grad_(False)


def load_plain_talker(checkpoint: Path, options: PlainTalkerOptions) -> PlainSoloTalker:
    """Returns the talker of a checkpoint folder. Raises ConfigError: the folder holds no solo
    checkpoint."""
    config = load_config(checkpoint)
    with options.building():
        talker = PlainSoloTalker(config, options)
    try:
        tensors = read_tensors(checkpoint / TALKER_FILE)
    except (FileNotFoundError, ValueError) as error:
        raise ConfigError(f"{checkpoint}: {error}") from error
    talker.load_tensors(tensors, checkpoint / TALKER_FILE)
    if options.device.type == "cpu" and options.dtype == torch.float32:
        # As the served talker's layers do there, see `talker_stage.HalfWeights`.
        talker.backbone.multiply_by(_pack)
    return talker


def _pack(weight: torch.Tensor) -> Product:
    packed = PackedProduct(weight)
    return lambda rows, bias: packed(rows)
