"""Names and shapes of model.safetensors: talker, code predictor, speaker encoder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cantata_layers.random_qwen3 import qwen3_tensors
from cantata_layers.random_tensors import TensorSpec, bias, conv, linear, weight

Config = Mapping[str, Any]


def _talker(config: Config) -> Iterator[TensorSpec]:
    size, text, predictor = (
        config["hidden_size"],
        config["text_hidden_size"],
        config["code_predictor_config"],
    )
    yield from qwen3_tensors("talker.model", config)
    yield TensorSpec("talker.model.codec_embedding.weight", (config["vocab_size"], size), 1.0)
    yield TensorSpec("talker.model.text_embedding.weight", (config["text_vocab_size"], text), 1.0)
    yield from linear("talker.text_projection.linear_fc1", text, text)
    yield from linear("talker.text_projection.linear_fc2", text, size, gain=6.0)
    yield weight("talker.codec_head", config["vocab_size"], size, gain=3.0)

    inner, codes = predictor["hidden_size"], predictor["vocab_size"]
    yield from qwen3_tensors("talker.code_predictor.model", predictor)
    for group in range(config["num_code_groups"] - 1):
        name = f"talker.code_predictor.model.codec_embedding.{group}"
        yield TensorSpec(f"{name}.weight", (codes, size), 1.0)
        yield weight(f"talker.code_predictor.lm_head.{group}", codes, inner, gain=3.0)
    if inner != size:
        yield from linear("talker.code_predictor.small_to_mtp_projection", size, inner)


def _squeeze_res2net(
    name: str, inputs: int, outputs: int, kernel: int, config: Config
) -> Iterator[TensorSpec]:
    scale, squeezed = config["enc_res2net_scale"], config["enc_se_channels"]
    yield from conv(f"{name}.tdnn1.conv", inputs, outputs, 1)
    for part in range(scale - 1):
        inner = outputs // scale
        yield from conv(f"{name}.res2net_block.blocks.{part}.conv", inner, inner, kernel)
    yield from conv(f"{name}.tdnn2.conv", outputs, outputs, 1)
    yield from conv(f"{name}.se_block.conv1", outputs, squeezed, 1)
    yield from conv(f"{name}.se_block.conv2", squeezed, outputs, 1)


def _speaker_encoder(config: Config) -> Iterator[TensorSpec]:
    channels, kernels = config["enc_channels"], config["enc_kernel_sizes"]
    last, attention = channels[-1], config["enc_attention_channels"]
    name = "speaker_encoder"
    # Log-mel values are around -6; a small first layer keeps later values in range.
    yield from conv(f"{name}.blocks.0.conv", config["mel_dim"], channels[0], kernels[0], gain=0.3)
    for index in range(1, len(channels) - 1):
        yield from _squeeze_res2net(
            f"{name}.blocks.{index}", channels[index - 1], channels[index], kernels[index], config
        )
    yield from conv(f"{name}.mfa.conv", last, last, kernels[-1])
    yield from conv(f"{name}.asp.tdnn.conv", 3 * last, attention, 1)
    yield from conv(f"{name}.asp.conv", attention, last, 1, gain=4.0)
    yield weight(f"{name}.fc", config["enc_dim"], 2 * last, 1)
    yield bias(f"{name}.fc", config["enc_dim"])


def talker_tensors(config: Config) -> Iterator[TensorSpec]:
    """Yield every tensor of model.safetensors for this config.json."""
    yield from _talker(config["talker_config"])
    if config["tts_model_type"] == "base":
        yield from _speaker_encoder(config["speaker_encoder_config"])
