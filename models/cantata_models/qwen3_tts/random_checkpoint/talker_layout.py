"""Names and shapes of model.safetensors: talker, code predictor, speaker encoder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from cantata_layers.ecapa import Ecapa
from cantata_layers.ecapa_config import read_ecapa_config
from cantata_layers.json_fields import JsonFields
from cantata_layers.random_qwen3 import qwen3_tensors
from cantata_layers.random_rules import Rules, gain, specify
from cantata_layers.random_tensors import TensorSpec, linear, weight
from cantata_models.qwen3_tts.speaker_config import DEFAULT, SPEAKER

Config = Mapping[str, Any]

SPEAKER_RULES: Rules = {
    # Log-mel values are around -6; a small first layer keeps later values in range.
    r"encoder\.blocks\.0\.conv\.weight$": gain(0.3),
    r"asp\.conv\.weight$": gain(4.0),
}


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


def _speaker_encoder(config: Config) -> Iterator[TensorSpec]:
    with torch.device("meta"):
        network = Ecapa(read_ecapa_config(JsonFields(config, "config.json"), DEFAULT))
    yield from specify(SPEAKER.shapes(network), SPEAKER_RULES)


def talker_tensors(config: Config) -> Iterator[TensorSpec]:
    """Yield every tensor of model.safetensors for this config.json."""
    yield from _talker(config["talker_config"])
    if config["tts_model_type"] == "base":
        yield from _speaker_encoder(config["speaker_encoder_config"])
