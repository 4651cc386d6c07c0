"""Names, shapes and sizes of the random tensors.

Names and shapes are those of transformers' model, built without memory. Sizes keep the signal's
scale through every layer, make attention peaky, and keep the wave within -1..1: in a flat or
clipping network faults would not show.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from transformers import AutoConfig, Qwen2_5OmniForConditionalGeneration

from cantata_layers.random_tensors import TensorSpec

Sizes = tuple[float, float]
"""Deviation and mean."""
Rule = Callable[[tuple[int, ...]], Sizes]


def _gain(gain: float, mean: float = 0.0) -> Rule:
    """Outputs are `gain` times as large as inputs."""
    return lambda shape: (gain / math.sqrt(math.prod(shape[1:])), mean)


def _values(deviation: float, mean: float = 0.0) -> Rule:
    return lambda shape: (deviation, mean)


def _upsampling(shape: tuple[int, ...]) -> Sizes:
    """A transposed convolution [in, out, kernel], of whose taps half or fewer meet an output."""
    return 1.0 / math.sqrt(2 * shape[0]), 0.0


RULES: tuple[tuple[str, Rule], ...] = (
    # The mel spectrogram lies around -4, where the vocoder does not clip it.
    (r"proj_out\.bias$", _values(1.0, -4.0)),
    (r"proj_out\.weight$", _gain(2.0)),
    (r"conv_post\.weight$", _gain(0.1)),
    (r"ups\.\d+\.0\.weight$", _upsampling),
    (r"act\.(alpha|beta)$", _values(0.3)),
    # Open gates: what the blocks of attention tell each other must be heard.
    (r"attn_norm\.linear\.weight$", _gain(1.0)),
    (r"attn_norm\.linear\.bias$", _values(0.7)),
    (r"norm_out\.linear\.weight$", _gain(0.5)),
    (r"(embed_tokens|codec_embed)\.weight$", _values(1.0)),
    (r"(norm\w*|ln_q|layer_norm)\.weight$", _values(0.2, 1.0)),
    (r"(q_proj|k_proj|to_q|to_k|\.q|\.k)\.weight$", _gain(2.0)),
    (r"(o_proj|to_out\.0|out_proj)\.weight$", _gain(2.0)),
    (r"(lm_head|codec_head)\.weight$", _gain(3.0)),
    (r"convs2\.\d+\.weight$", _gain(0.4)),
    (r"\.weight$", _gain(1.0)),
    (r"\.bias$", _values(0.2)),
)
"""The first rule whose pattern is in a tensor's name."""


def checkpoint_tensors(config: Mapping[str, Any]) -> Iterator[TensorSpec]:
    """Yield every tensor of a checkpoint with this config.json."""
    arguments = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device("meta"):
        model = Qwen2_5OmniForConditionalGeneration(  # type: ignore[no-untyped-call]
            AutoConfig.for_model("qwen2_5_omni", **arguments)
        )
    for name, tensor in model.state_dict().items():
        shape = tuple(tensor.shape)
        rule = next(rule for pattern, rule in RULES if re.search(pattern, name))
        deviation, mean = rule(shape)
        yield TensorSpec(name, shape, deviation, mean)
