"""Names, shapes and sizes of the random tensors.

Names and shapes are those of transformers' model, built without memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from transformers import AutoConfig, Qwen2_5OmniForConditionalGeneration

from cantata_layers.random_rules import Rules, gain, specify, upsampling, values
from cantata_layers.random_tensors import TensorSpec

RULES: Rules = {
    # The mel spectrogram lies around -4, where the vocoder does not clip it.
    r"proj_out\.bias$": values(1.0, -4.0),
    r"proj_out\.weight$": gain(2.0),
    r"conv_post\.weight$": gain(0.1),
    r"ups\.\d+\.0\.weight$": upsampling(taps=2),
    r"act\.(?:alpha|beta)$": values(0.3),
    # Open gates: what the blocks of attention tell each other must be heard.
    r"attn_norm\.linear\.weight$": gain(1.0),
    r"attn_norm\.linear\.bias$": values(0.7),
    r"norm_out\.linear\.weight$": gain(0.5),
    r"(?:embed_tokens|codec_embed)\.weight$": values(1.0),
    r"ln_post\.weight$": values(1.0),
    r"(?:q_proj|k_proj|to_q|to_k|\.q|\.k|o_proj|to_out\.0|out_proj)\.weight$": gain(2.0),
    r"(?:lm_head|codec_head)\.weight$": gain(3.0),
    r"convs2\.\d+\.weight$": gain(0.4),
}


def checkpoint_tensors(config: Mapping[str, Any]) -> Iterator[TensorSpec]:
    """Yield every tensor of a checkpoint with this config.json."""
    arguments = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device("meta"):
        model = Qwen2_5OmniForConditionalGeneration(  # type: ignore[no-untyped-call]
            AutoConfig.for_model("qwen2_5_omni", **arguments)
        )
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    yield from specify(shapes, RULES)
