"""Names, shapes and sizes of the random tensors.

Names and shapes are those of transformers' model, built without memory; only experts are published
one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, Qwen3OmniMoeForConditionalGeneration

from cantata_layers.random_code_decoder import code_decoder_rules
from cantata_layers.random_qwen3 import PEAKY
from cantata_layers.random_rules import Rules, Shape, gain, norm, specify, values
from cantata_layers.random_tensors import TensorSpec

CODE2WAV = "code2wav"
RULES: Rules = {
    r"audio_tower\.conv2d\d\.weight$": gain(1.5),
    r"audio_tower\..*[qk]_proj\.weight$|audio_tower\.proj[12]\.weight$": gain(2.0),
    r"patch_embed\.proj\.weight$": gain(3.0),
    r"pos_embed\.weight$": values(0.5),
    r"attn\.qkv\.weight$|merger.*mlp\.0\.weight$": gain(2.0),
    r"(?:embed_tokens|codec_embedding(?:\.\d+)?)\.weight$": values(1.0),
    r"[qk]_norm\.weight$": norm(PEAKY),
    r"o_proj\.weight$|lm_head.*\.weight$|codec_head\.weight$": gain(3.0),
    r"mlp\.gate\.weight$|down_proj\.weight$": gain(2.0),
    r"_projection\.linear_fc2\.weight$": gain(6.0),
}


def checkpoint_tensors(config: Mapping[str, Any]) -> Iterator[TensorSpec]:
    """Yield every tensor of a checkpoint with this config.json."""
    arguments = {key: value for key, value in config.items() if key != "model_type"}
    kind: Any = Qwen3OmniMoeForConditionalGeneration
    with torch.device("meta"):
        model = kind(AutoConfig.for_model("qwen3_omni_moe", **arguments))
    for part, network in model.named_children():
        shapes = dict(_publish(f"{part}.", network))
        yield from specify(shapes, _code2wav_rules(config) if part == CODE2WAV else RULES)


def _publish(prefix: str, network: nn.Module) -> Iterator[tuple[str, Shape]]:
    """Yield names and shapes; of joined experts, those of each."""
    for own, tensor in network.state_dict(prefix=prefix).items():
        stem, joined, fused = own.partition(".experts.")
        if not joined:
            yield own, tuple(tensor.shape)
            continue
        count, rows, columns = tensor.shape
        names = ("gate_proj", "up_proj") if fused == "gate_up_proj" else (fused,)
        for index in range(count):
            for name in names:
                yield f"{stem}.experts.{index}.{name}.weight", (rows // len(names), columns)


def _code2wav_rules(config: Mapping[str, Any]) -> Rules:
    code2wav = config["code2wav_config"]
    # Their mean over the codebooks has variance 1.
    embedding = {r"code_embedding\.weight$": values(code2wav["num_quantizers"] ** 0.5)}
    return {**embedding, **code_decoder_rules(len(code2wav["upsample_rates"]))}
