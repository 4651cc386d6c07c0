"""The text encoder's tensors, as transformers has them, under their published names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from transformers import Qwen2_5_VLConfig

from cantata_layers.qwen_image.text.encoder import FLAT_NAMES, empty_network
from cantata_layers.random_rules import Rules, gain, specify, values
from cantata_layers.random_tensors import TensorSpec
from cantata_layers.weight_map import WeightMap

RULES: Rules = {
    r"embed_tokens\.weight$": values(1.0),
    r"^model\..*(?:q_proj|k_proj|down_proj)\.weight$": gain(2.0),
    r"attn\.qkv\.weight$|merger\.mlp\.0\.weight$": gain(2.0),
    r"patch_embed\.proj\.weight$": gain(3.0),
}


def text_tensors(config: Mapping[str, Any]) -> Iterator[TensorSpec]:
    """Yield every tensor of a text_encoder/ folder with this config.json."""
    kind: Any = Qwen2_5_VLConfig
    with torch.device("meta"):
        network = empty_network(kind(**config), True, torch.float32)
    head = {"lm_head.weight": (config["vocab_size"], config["hidden_size"])}
    yield from specify(WeightMap(FLAT_NAMES).shapes(network) | head, RULES)
