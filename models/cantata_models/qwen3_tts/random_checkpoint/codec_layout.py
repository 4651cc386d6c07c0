"""Names and shapes of speech_tokenizer/model.safetensors: the Mimi encoder and the decoder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cantata_layers.random_code_decoder import (
    scale,
    sliding_transformer,
    upsamplers,
    wave_stages,
)
from cantata_layers.random_tensors import (
    TensorSpec,
    bias,
    conv,
    linear,
    norm,
    weight,
)

Config = Mapping[str, Any]


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


def _decoder_quantiser(config: Config) -> Iterator[TensorSpec]:
    size = config["codebook_dim"]
    for part, count in (("rvq_first", 1), ("rvq_rest", config["num_quantizers"] - 1)):
        name = f"decoder.quantizer.{part}"
        yield weight(f"{name}.input_proj", size // 2, size, 1)
        yield weight(f"{name}.output_proj", size, size // 2, 1)
        for index in range(count):
            book = f"{name}.vq.layers.{index}._codebook"
            yield TensorSpec(f"{book}.cluster_usage", (config["codebook_size"],), 0.2, 1.0)
            yield TensorSpec(f"{book}.embedding_sum", (config["codebook_size"], size // 2), 1.0)


def _decoder_transformer(config: Config) -> Iterator[TensorSpec]:
    name, size, latent = "decoder.pre_transformer", config["hidden_size"], config["latent_dim"]
    yield from sliding_transformer(name, config, config["head_dim"])
    yield from linear(f"{name}.input_proj", latent, size, gain=0.5)
    yield from linear(f"{name}.output_proj", size, latent)


def _decoder_waves(config: Config) -> Iterator[TensorSpec]:
    latent, size = config["latent_dim"], config["decoder_dim"]
    yield from conv("decoder.pre_conv.conv", config["codebook_dim"], latent, 3)
    yield from upsamplers("decoder.upsample", latent, config["upsampling_ratios"])
    yield from wave_stages("decoder.decoder", latent, size, config["upsample_rates"])


def codec_tensors(config: Config) -> Iterator[TensorSpec]:
    """Yield every tensor of speech_tokenizer/model.safetensors for its config.json."""
    encoder, decoder = config["encoder_config"], config["decoder_config"]
    size = encoder["hidden_size"]
    yield from _encoder_convolutions(encoder)
    yield from _encoder_transformer(encoder)
    yield weight("encoder.downsample.conv", size, size, 4)
    yield from _encoder_quantiser(encoder)
    yield from _decoder_quantiser(decoder)
    yield from _decoder_transformer(decoder)
    yield from _decoder_waves(decoder)
