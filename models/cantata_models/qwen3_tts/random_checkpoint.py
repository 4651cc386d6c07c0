"""Checkpoints of seeded random weights in Qwen3-TTS's published format.

Tiny ones prove numeric parity with the reference package. One of the published size measures speed,
which depends only on shapes. It needs only NumPy, torch and safetensors, so the same files can be
made with any versions of other packages installed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import MimiConfig

from cantata_layers.ecapa import Ecapa
from cantata_layers.ecapa_config import EcapaConfig
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.random_qwen_tokenizer import ORDINARY_TOKENS, write_qwen_tokenizer
from cantata_layers.random_rules import Rules, code_decoder_rules, gain, specify, values
from cantata_layers.random_tensors import (
    TensorSpec,
    linear,
    qwen3_tensors,
    weight,
    write_json,
    write_tensors,
)
from cantata_layers.weights import TakenShapes
from cantata_models.qwen3_tts.codec import FOLDER, Qwen3TtsDecoder, load_decoder_config
from cantata_models.qwen3_tts.encoder import NAMES, SPEAKER, SPEAKER_SIZES, Qwen3TtsFrameEncoder

KINDS = ("custom_voice", "voice_design", "base")
LANGUAGES = ("chinese", "english", "german", "beijing_dialect")
SPEAKERS = {"Vivian": False, "Ryan": False, "Dylan": "beijing_dialect"}


@dataclass(frozen=True, slots=True)
class Qwen3TtsShape:
    """The values that differ between talker sizes."""

    size_name: str
    hidden: int
    text_hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    layers: int
    predictor_hidden: int
    predictor_ffn: int
    predictor_layers: int
    codes: int
    first_special: int | None
    mrope_section: tuple[int, int, int]
    rope_theta: float
    whole_encoders: bool = False
    """Whether the encoders have their published size."""


TINY_SMALL = Qwen3TtsShape(
    size_name="0b6",
    hidden=64,
    text_hidden=96,
    heads=4,
    kv_heads=2,
    head_dim=32,
    ffn=96,
    layers=2,
    predictor_hidden=64,
    predictor_ffn=96,
    predictor_layers=2,
    codes=64,
    first_special=None,
    mrope_section=(6, 5, 5),
    rope_theta=10_000.0,
)
"""Like the 0.6B models: the code predictor is as wide as the talker and has no projection."""
TINY_LARGE = replace(
    TINY_SMALL,
    size_name="1b7",
    hidden=96,
    ffn=128,
    layers=3,
    predictor_ffn=128,
    predictor_layers=1,
)
"""Like the 1.7B models: a projection leads to a narrower code predictor."""
TINY_TALKER = replace(TINY_SMALL, whole_encoders=True)
"""Speaks faster than in real time on a CPU, while a recording costs as much as with real models."""
PUBLISHED_SMALL = Qwen3TtsShape(
    size_name="0b6",
    hidden=1024,
    text_hidden=2048,
    heads=16,
    kv_heads=8,
    head_dim=128,
    ffn=3072,
    layers=28,
    predictor_hidden=1024,
    predictor_ffn=3072,
    predictor_layers=5,
    codes=2048,
    first_special=151_643,
    mrope_section=(24, 20, 20),
    rope_theta=1_000_000.0,
    whole_encoders=True,
)
"""Qwen3-TTS-12Hz-0.6B."""
PUBLISHED_LARGE = replace(PUBLISHED_SMALL, size_name="1b7", hidden=2048, ffn=6144)
"""Qwen3-TTS-12Hz-1.7B; its code predictor is that of the smaller model, after a projection."""
PUBLISHED = {"0.6b": PUBLISHED_SMALL, "1.7b": PUBLISHED_LARGE}
SIZES = PUBLISHED | {"tiny-talker": TINY_TALKER}


def _attention(shape: Qwen3TtsShape, hidden: int, ffn: int, layers: int) -> dict[str, Any]:
    return {
        "attention_bias": False,
        "attention_dropout": 0,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "initializer_range": 0.02,
        "intermediate_size": ffn,
        "num_attention_heads": shape.heads,
        "num_code_groups": 16,
        "num_hidden_layers": layers,
        "num_key_value_heads": shape.kv_heads,
        "rms_norm_eps": 1e-06,
        "rope_theta": shape.rope_theta,
        "sliding_window": None,
        "use_cache": True,
        "use_sliding_window": False,
    }


def _talker(shape: Qwen3TtsShape, kind: str) -> dict[str, Any]:
    base = shape.codes
    speakers = SPEAKERS if kind == "custom_voice" else {}
    layers = shape.predictor_layers
    predictor = _attention(shape, shape.predictor_hidden, shape.predictor_ffn, layers) | {
        "max_position_embeddings": 65_536,
        "model_type": "qwen3_tts_talker_code_predictor",
        "rope_scaling": None,
        "tie_word_embeddings": False,
        "vocab_size": shape.codes,
    }
    return _attention(shape, shape.hidden, shape.ffn, shape.layers) | {
        "code_predictor_config": predictor,
        "codec_bos_id": base + 101,
        "codec_eos_token_id": base + 102,
        "codec_language_id": {name: base + 7 + i for i, name in enumerate(LANGUAGES)},
        "codec_nothink_id": base + 107,
        "codec_pad_id": base + 100,
        "codec_think_bos_id": base + 108,
        "codec_think_eos_id": base + 109,
        "codec_think_id": base + 106,
        "max_position_embeddings": 32_768,
        "model_type": "qwen3_tts_talker",
        "position_id_per_seconds": 13,
        "rope_scaling": {
            "interleaved": True,
            "mrope_section": list(shape.mrope_section),
            "rope_type": "default",
            "type": "default",
        },
        "spk_id": {name.lower(): base + 950 + i for i, name in enumerate(speakers)},
        "spk_is_dialect": {name.lower(): dialect for name, dialect in speakers.items()},
        "text_hidden_size": shape.text_hidden,
        "text_vocab_size": _text_vocabulary(shape),
        "vocab_size": base + 1024,
    }


def _text_vocabulary(shape: Qwen3TtsShape) -> int:
    """Return the rows of the text embedding: the published number, or up to the last token."""
    return 151_936 if shape.first_special else max(special_ids().values()) + 1


def _speaker_encoder(shape: Qwen3TtsShape) -> dict[str, Any]:
    tiny = not shape.whole_encoders
    return {
        "enc_attention_channels": 8 if tiny else 128,
        "enc_channels": [16, 16, 16, 16, 48] if tiny else [512, 512, 512, 512, 1536],
        "enc_dilations": [1, 2, 3, 4, 1],
        "enc_dim": shape.hidden,
        "enc_kernel_sizes": [5, 3, 3, 3, 1],
        "enc_res2net_scale": 8,
        "enc_se_channels": 8 if tiny else 128,
        "mel_dim": 128,
        "sample_rate": 24_000,
    }


def model_config(shape: Qwen3TtsShape, kind: str) -> dict[str, Any]:
    """Return config.json of a whole checkpoint."""
    ids = special_ids(shape.first_special)
    config: dict[str, Any] = {
        "architectures": ["Qwen3TTSForConditionalGeneration"],
        "assistant_token_id": 77_091 if shape.first_special else 256 + len("assistant") - 2,
        "im_end_token_id": ids["<|im_end|>"],
        "im_start_token_id": ids["<|im_start|>"],
        "model_type": "qwen3_tts",
        "talker_config": _talker(shape, kind),
        "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        "tts_bos_token_id": ids["<tts_text_bos>"],
        "tts_eos_token_id": ids["<tts_text_eod>"],
        "tts_model_size": shape.size_name,
        "tts_model_type": kind,
        "tts_pad_token_id": ids["<tts_pad>"],
        # With a later version the reference replaces the tokenizer's pattern with another model's.
        "transformers_version": "4.57.1",
    }
    if kind == "base":
        config["speaker_encoder_config"] = _speaker_encoder(shape)
    return config


GENERATION_CONFIG = {
    "do_sample": True,
    "max_new_tokens": 8192,
    "repetition_penalty": 1.05,
    "subtalker_dosample": True,
    "subtalker_temperature": 0.9,
    "subtalker_top_k": 50,
    "subtalker_top_p": 1.0,
    "temperature": 0.9,
    "top_k": 50,
    "top_p": 1.0,
}


def codec_config(shape: Qwen3TtsShape) -> dict[str, Any]:
    """Return speech_tokenizer/config.json. All shapes keep the published 1920 samples per frame."""
    tiny, tiny_encoder = shape.first_special is None, not shape.whole_encoders
    encoder = {
        "_frame_rate": 12.5,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "audio_channels": 1,
        "codebook_dim": 16 if tiny_encoder else 256,
        "codebook_size": shape.codes,
        "compress": 2,
        "dilation_growth_rate": 2,
        "head_dim": 16 if tiny_encoder else 64,
        "hidden_act": "gelu",
        "hidden_size": 32 if tiny_encoder else 512,
        "initializer_range": 0.02,
        "intermediate_size": 48 if tiny_encoder else 2048,
        "kernel_size": 7,
        "last_kernel_size": 3,
        "layer_scale_initial_scale": 0.01,
        "max_position_embeddings": 8000,
        "norm_eps": 1e-05,
        "normalize": False,
        "num_attention_heads": 2 if tiny_encoder else 8,
        "num_filters": 4 if tiny_encoder else 64,
        "num_hidden_layers": 2 if tiny_encoder else 8,
        "num_key_value_heads": 2 if tiny_encoder else 8,
        "num_quantizers": 32,
        "num_residual_layers": 1,
        "num_semantic_quantizers": 1,
        "pad_mode": "constant",
        "residual_kernel_size": 3,
        "rope_theta": 10_000.0,
        "sampling_rate": 24_000,
        "sliding_window": 24 if tiny_encoder else 250,
        "trim_right_ratio": 1.0,
        "upsample_groups": 32 if tiny_encoder else 512,
        "upsampling_ratios": [8, 6, 5, 4],
        "use_cache": False,
        "use_causal_conv": True,
        "use_conv_shortcut": False,
        "use_streaming": False,
        "vector_quantization_hidden_dimension": 16 if tiny_encoder else 256,
    }
    decoder = {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "codebook_dim": 32 if tiny else 512,
        "codebook_size": shape.codes,
        "decoder_dim": 64 if tiny else 1536,
        "head_dim": 16 if tiny else 64,
        "hidden_act": "silu",
        "hidden_size": 32 if tiny else 512,
        "intermediate_size": 48 if tiny else 1024,
        "latent_dim": 48 if tiny else 1024,
        "layer_scale_initial_scale": 0.01,
        "max_position_embeddings": 8000,
        "num_attention_heads": 4 if tiny else 16,
        "num_hidden_layers": 2 if tiny else 8,
        "num_key_value_heads": 4 if tiny else 16,
        "num_quantizers": 16,
        "num_semantic_quantizers": 1,
        "rms_norm_eps": 1e-05,
        "rope_theta": 10_000,
        "semantic_codebook_size": 2 * shape.codes,
        "sliding_window": 72,
        "upsample_rates": [8, 5, 4, 3],
        "upsampling_ratios": [2, 2],
        "vector_quantization_hidden_dimension": 32 if tiny else 512,
    }
    return {
        "architectures": ["Qwen3TTSTokenizerV2Model"],
        "decode_upsample_rate": 1920,
        "decoder_config": decoder,
        "encode_downsample_rate": 1920,
        "encoder_config": encoder,
        "encoder_valid_num_quantizers": 16,
        "input_sample_rate": 24_000,
        "model_type": "qwen3_tts_tokenizer_12hz",
        "output_sample_rate": 24_000,
    }


FEATURE_EXTRACTOR_CONFIG = {
    "chunk_length_s": None,
    "feature_extractor_type": "EncodecFeatureExtractor",
    "feature_size": 1,
    "overlap": None,
    "padding_side": "right",
    "padding_value": 0.0,
    "return_attention_mask": True,
    "sampling_rate": 24_000,
}


SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tts_pad>",
    "<tts_text_bos>",
    "<tts_text_eod>",
)
PUBLISHED_OFFSETS = (0, 1, 2, 28, 29, 30)
"""The first three follow the vocabulary, and those for speech come 28 later."""


def special_ids(first_special: int | None = None) -> dict[str, int]:
    """Return the ids of `SPECIAL`. `first_special` pads the vocabulary to there, as published."""
    if first_special is None:
        return {token: ORDINARY_TOKENS + rank for rank, token in enumerate(SPECIAL)}
    ids = [first_special + offset for offset in PUBLISHED_OFFSETS]
    return dict(zip(SPECIAL, ids, strict=True))


def write_tokenizer(folder: Path, first_special: int | None = None) -> None:
    """Write vocab.json, merges.txt, tokenizer_config.json and preprocessor_config.json."""
    processor_class = "Qwen3TTSProcessor"
    write_qwen_tokenizer(folder, special_ids(first_special), {"processor_class": processor_class})
    processor = {"padding_side": "left", "processor_class": processor_class}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=2) + "\n")


Config = Mapping[str, Any]

SPEAKER_RULES: Rules = {
    # Log-mel values are around -6; a small first layer keeps later values in range.
    r"encoder\.blocks\.0\.conv\.weight$": gain(0.3),
    r"asp\.conv\.weight$": gain(4.0),
}


def _talker_shapes(config: Config) -> Iterator[TensorSpec]:
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


def _speaker_encoder_shapes(config: Config) -> Iterator[TensorSpec]:
    with torch.device("meta"):
        network = Ecapa(JsonFields(config, "config.json").read(EcapaConfig, SPEAKER_SIZES))
    yield from specify(SPEAKER.shapes(network), SPEAKER_RULES)


def talker_tensors(config: Config) -> Iterator[TensorSpec]:
    """Yield every tensor of model.safetensors for this config.json."""
    yield from _talker_shapes(config["talker_config"])
    if config["tts_model_type"] == "base":
        yield from _speaker_encoder_shapes(config["speaker_encoder_config"])


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
        encoder = Qwen3TtsFrameEncoder(MimiConfig(**config), sample_rate=1, samples_per_frame=1)
    last = rf"encoder\.layers\.{len(encoder.encoder.layers) - 1}\.conv\.weight$"
    yield from specify(NAMES.shapes(encoder), {last: gain(1.0), **ENCODER_RULES})


def _decoder(checkpoint: Path) -> Iterator[TensorSpec]:
    """As the decoder takes them, and what only training needs."""
    taken, config = TakenShapes(), load_decoder_config(checkpoint)
    Qwen3TtsDecoder(checkpoint, META, taken.read)
    size = config.codebook_dim
    for part in ("rvq_first", "rvq_rest"):
        taken.shapes[f"decoder.quantizer.{part}.input_proj.weight"] = (size // 2, size, 1)
    rules = code_decoder_rules(len(config.upsample_rates))
    yield from specify(taken.shapes, {**DECODER_RULES, **rules})


def write_checkpoint(
    folder: Path, shape: Qwen3TtsShape, kind: str, seed: int, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a checkpoint of one of `configs.KINDS` into `folder` and return it."""
    codec_folder = folder / "speech_tokenizer"
    codec_folder.mkdir(parents=True, exist_ok=True)
    config, codec = model_config(shape, kind), codec_config(shape)
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", GENERATION_CONFIG)
    write_json(codec_folder / "config.json", codec)
    write_json(codec_folder / "preprocessor_config.json", FEATURE_EXTRACTOR_CONFIG)
    write_tokenizer(folder, shape.first_special)
    write_tensors(folder / "model.safetensors", talker_tensors(config), seed, dtype)
    # The published codec is float32, whatever the talker's dtype.
    codec_file = codec_folder / "model.safetensors"
    write_tensors(codec_file, codec_tensors(folder), seed, torch.float32)
    return folder


def write_tiny(folder: Path) -> None:
    """Write a tiny checkpoint with stock voices."""
    write_checkpoint(folder, TINY_SMALL, "custom_voice", seed=1)


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.qwen3_tts.random_checkpoint",
        description="Write a checkpoint with random weights (0.6b: 2.5 GB, 1.7b: 4.5 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SIZES), default="0.6b")
    parser.add_argument("--kind", choices=KINDS, default="custom_voice")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    shape = SIZES[arguments.size]
    write_checkpoint(arguments.folder, shape, arguments.kind, arguments.seed, torch.bfloat16)
    print(arguments.folder)


if __name__ == "__main__":
    main()
