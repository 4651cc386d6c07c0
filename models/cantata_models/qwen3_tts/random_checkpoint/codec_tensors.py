"""The tensors of speech_tokenizer/model.safetensors, as encoder and decoder have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import MimiConfig

from cantata_layers.json_fields import read_json
from cantata_layers.random_code_decoder import code_decoder_rules
from cantata_layers.random_rules import Rules, gain, specify, values
from cantata_layers.random_tensors import TensorSpec
from cantata_layers.weights import TakenShapes
from cantata_models.qwen3_tts.codec.config import FOLDER, load_decoder_config
from cantata_models.qwen3_tts.codec.decoder import SpeechDecoder
from cantata_models.qwen3_tts.codec.encoder import NAMES, ReferenceEncoder

META = torch.device("meta")
ENCODER_RULES: Rules = {
    r"encoder\.layers\.0\.conv\.weight$": gain(3.0),
    r"encoder\.layers\.\d+\.conv\.weight$": gain(1.4),
    r"[qk]_proj\.weight$": gain(2.0),
    r"layer_scale\.scale$": values(0.1, 0.3),
    r"initialized$": values(0.0, 1.0),
    r"cluster_usage$": values(0.2, 1.0),
    # Each codebook takes a smaller part than the one before it.
    r"layers\.(\d+)\.codebook\.embed_sum$": values(1.0, decay=0.9),
}
DECODER_RULES: Rules = {
    r"cluster_usage$": values(0.2, 1.0),
    r"embedding_sum$": values(1.0),
    r"pre_transformer\.input_proj\.weight$": gain(0.5),
}


def codec_tensors(checkpoint: Path) -> Iterator[TensorSpec]:
    """Yield every tensor; the folder has the config.json."""
    yield from _encoder(checkpoint)
    yield from _decoder(checkpoint)


def _encoder(checkpoint: Path) -> Iterator[TensorSpec]:
    config = read_json(checkpoint / FOLDER / "config.json").items("encoder_config")
    with META:
        encoder = ReferenceEncoder(MimiConfig(**config), sample_rate=1, samples_per_frame=1)
    last = rf"encoder\.layers\.{len(encoder.encoder.layers) - 1}\.conv\.weight$"
    yield from specify(NAMES.shapes(encoder), {last: gain(1.0), **ENCODER_RULES})


def _decoder(checkpoint: Path) -> Iterator[TensorSpec]:
    """As the decoder takes them, and what only training needs."""
    taken, config = TakenShapes(), load_decoder_config(checkpoint)
    SpeechDecoder(checkpoint, META, taken.read)
    size = config.codebook_dim
    for part in ("rvq_first", "rvq_rest"):
        taken.shapes[f"decoder.quantizer.{part}.input_proj.weight"] = (size // 2, size, 1)
    rules = code_decoder_rules(len(config.upsample_rates))
    yield from specify(taken.shapes, {**DECODER_RULES, **rules})
