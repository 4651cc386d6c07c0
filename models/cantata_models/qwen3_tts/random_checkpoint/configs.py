"""config.json of the random checkpoints: three kinds, in two tiny and two published shapes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cantata_models.qwen3_tts.random_checkpoint.tokenizer import special_ids

KINDS = ("custom_voice", "voice_design", "base")
LANGUAGES = ("chinese", "english", "german", "beijing_dialect")
SPEAKERS = {"Vivian": False, "Ryan": False, "Dylan": "beijing_dialect"}


@dataclass(frozen=True, slots=True)
class Shape:
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


TINY_SMALL = Shape(
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
PUBLISHED_SMALL = Shape(
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


def _attention(shape: Shape, hidden: int, ffn: int, layers: int) -> dict[str, Any]:
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


def _talker(shape: Shape, kind: str) -> dict[str, Any]:
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


def _text_vocabulary(shape: Shape) -> int:
    """Return the rows of the text embedding: the published number, or up to the last token."""
    return 151_936 if shape.first_special else max(special_ids().values()) + 1


def _speaker_encoder(shape: Shape) -> dict[str, Any]:
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


def model_config(shape: Shape, kind: str) -> dict[str, Any]:
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


def codec_config(shape: Shape) -> dict[str, Any]:
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
