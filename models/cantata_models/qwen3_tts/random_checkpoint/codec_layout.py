"""Names and shapes of speech_tokenizer/model.safetensors: the Mimi encoder and the decoder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from cantata_layers.json_fields import read_json
from cantata_layers.random_code_decoder import code_decoder_rules, scale
from cantata_layers.random_rules import Rules, gain, specify, values
from cantata_layers.random_tensors import TensorSpec, bias, conv, norm, weight
from cantata_layers.weights import TakenShapes
from cantata_models.qwen3_tts.codec.config import FOLDER, load_decoder_config
from cantata_models.qwen3_tts.codec.decoder import SpeechDecoder

Config = Mapping[str, Any]

DECODER_RULES: Rules = {
    r"cluster_usage$": values(0.2, 1.0),
    r"embedding_sum$": values(1.0),
    r"pre_transformer\.input_proj\.weight$": gain(0.5),
}


def _encoder_convolutions(config: Config) -> Iterator[TensorSpec]:
    name, width = "encoder.encoder.layers", config["num_filters"]
    yield from conv(f"{name}.0.conv", 1, width, config["kernel_size"], gain=3.0)
    layer = 1
    for ratio in reversed(config["upsampling_ratios"]):
        inner = width // config["compress"]
        yield from conv(f"{name}.{layer}.block.1.conv", width, inner, 3)
        yield from conv(f"{name}.{layer}.block.3.conv", inner, width, 1)
        yield from conv(f"{name}.{layer + 2}.conv", width, 2 * width, 2 * ratio, gain=1.4)
        width, layer = 2 * width, layer + 3
    last = config["last_kernel_size"]
    yield from conv(f"{name}.{layer + 1}.conv", width, config["hidden_size"], last)


def _encoder_transformer(config: Config) -> Iterator[TensorSpec]:
    size, inner = config["hidden_size"], config["intermediate_size"]
    for index in range(config["num_hidden_layers"]):
        layer = f"encoder.encoder_transformer.layers.{index}"
        for projection in ("q_proj", "k_proj"):
            yield weight(f"{layer}.self_attn.{projection}", size, size, gain=2.0)
        for projection in ("v_proj", "o_proj"):
            yield weight(f"{layer}.self_attn.{projection}", size, size)
        yield weight(f"{layer}.mlp.fc1", inner, size)
        yield weight(f"{layer}.mlp.fc2", size, inner)
        for normalisation in ("input_layernorm", "post_attention_layernorm"):
            yield norm(f"{layer}.{normalisation}", size)
            yield bias(f"{layer}.{normalisation}", size)
        yield scale(f"{layer}.self_attn_layer_scale.scale", size)
        yield scale(f"{layer}.mlp_layer_scale.scale", size)


def _encoder_quantiser(config: Config) -> Iterator[TensorSpec]:
    size, inner = config["hidden_size"], config["codebook_dim"]
    semantic = config["num_semantic_quantizers"]
    parts = {"semantic": semantic, "acoustic": config["num_quantizers"] - semantic}
    for part, count in parts.items():
        name = f"encoder.quantizer.{part}_residual_vector_quantizer"
        yield weight(f"{name}.input_proj", inner, size, 1)
        yield weight(f"{name}.output_proj", size, inner, 1)
        for index in range(count):
            book = f"{name}.layers.{index}.codebook"
            yield TensorSpec(f"{book}.initialized", (1,), 0.0, 1.0)
            yield TensorSpec(f"{book}.cluster_usage", (config["codebook_size"],), 0.2, 1.0)
            shape = (config["codebook_size"], inner)
            yield TensorSpec(f"{book}.embed_sum", shape, 0.9**index)


def _decoder(checkpoint: Path) -> Iterator[TensorSpec]:
    """As the decoder takes them, and what only training needs."""
    taken = TakenShapes()
    SpeechDecoder(checkpoint, torch.device("meta"), taken.read)
    config = load_decoder_config(checkpoint)
    size = config.codebook_dim
    for part in ("rvq_first", "rvq_rest"):
        taken.shapes[f"decoder.quantizer.{part}.input_proj.weight"] = (size // 2, size, 1)
    rules = code_decoder_rules(len(config.upsample_rates))
    yield from specify(taken.shapes, {**DECODER_RULES, **rules})


def codec_tensors(checkpoint: Path) -> Iterator[TensorSpec]:
    """Yield every tensor of speech_tokenizer/model.safetensors for its config.json."""
    encoder = read_json(checkpoint / FOLDER / "config.json").items("encoder_config")
    size = encoder["hidden_size"]
    yield from _encoder_convolutions(encoder)
    yield from _encoder_transformer(encoder)
    yield weight("encoder.downsample.conv", size, size, 4)
    yield from _encoder_quantiser(encoder)
    yield from _decoder(checkpoint)
