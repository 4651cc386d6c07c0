"""Names and shapes of the tensors of talker and code2wav."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from cantata_layers.random_code_decoder import code_decoder_rules
from cantata_layers.random_qwen3 import qwen3_tensors
from cantata_layers.random_qwen3_moe import qwen3_moe_tensors
from cantata_layers.random_rules import specify, values
from cantata_layers.random_tensors import TensorSpec, linear, weight
from cantata_layers.weights import TakenShapes
from cantata_models.qwen3_omni.code2wav.decoder import Code2Wav
from cantata_models.qwen3_omni.config.checkpoint import load_speech_config

Config = Mapping[str, Any]


def talker_tensors(config: Config) -> Iterator[TensorSpec]:
    """Yield every tensor of `talker_config`."""
    text, predictor = config["text_config"], config["code_predictor_config"]
    size, codes = text["hidden_size"], predictor["vocab_size"]
    inner, thinker = text["intermediate_size"], config["thinker_hidden_size"]
    yield from qwen3_moe_tensors("talker.model", text)
    yield TensorSpec("talker.model.codec_embedding.weight", (text["vocab_size"], size), 1.0)
    for projection in ("text_projection", "hidden_projection"):
        yield from linear(f"talker.{projection}.linear_fc1", thinker, inner)
        yield from linear(f"talker.{projection}.linear_fc2", inner, size, gain=6.0)
    yield weight("talker.codec_head", text["vocab_size"], size, gain=3.0)
    yield from qwen3_tensors("talker.code_predictor.model", predictor)
    for group in range(config["num_code_groups"] - 1):
        name = f"talker.code_predictor.model.codec_embedding.{group}"
        yield TensorSpec(f"{name}.weight", (codes, size), 1.0)
        yield weight(f"talker.code_predictor.lm_head.{group}", codes, size, gain=3.0)


def code2wav_tensors(checkpoint: Path) -> Iterator[TensorSpec]:
    """Yield every tensor of code2wav, as it takes them; the folder has the JSON files."""
    taken = TakenShapes()
    Code2Wav(checkpoint, torch.device("meta"), taken.read)
    config = load_speech_config(checkpoint)[1].code2wav
    # Their mean over the codebooks has variance 1.
    embedding = {r"code_embedding\.weight$": values(config.codebooks**0.5)}
    rules = code_decoder_rules(len(config.upsample_rates))
    yield from specify(taken.shapes, {**embedding, **rules})
