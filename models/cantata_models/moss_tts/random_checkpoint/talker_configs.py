"""config.json of the random talkers: both models, tiny and of the published size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cantata_layers.random_qwen_tokenizer import ORDINARY_TOKENS
from cantata_models.moss_tts.random_checkpoint.sentencepiece_model import VOCABULARY

SPECIAL_OFFSETS = {
    "<|endoftext|>": 0,
    "<|im_start|>": 1,
    "<|im_end|>": 2,
    "<|vision_pad|>": 11,
    "<|video_pad|>": 13,
    "<|audio_start|>": 26,
    "<|audio_end|>": 27,
}
"""Local's special tokens, counted from the first one, as published."""


@dataclass(frozen=True, slots=True)
class LocalShape:
    """The values that differ between Local's sizes."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    layers: int
    local_heads: int
    local_ffn: int
    codebooks: int
    codes: int
    first_special: int
    vocabulary: int

    @property
    def special_ids(self) -> dict[str, int]:
        """Ids of the special tokens."""
        return {token: self.first_special + offset for token, offset in SPECIAL_OFFSETS.items()}


@dataclass(frozen=True, slots=True)
class NanoShape:
    """The values that differ between Nano's sizes."""

    hidden: int
    heads: int
    ffn: int
    layers: int
    codebooks: int
    codes: int
    vocabulary: int


TINY_LOCAL = LocalShape(
    hidden=64,
    heads=4,
    kv_heads=2,
    head_dim=32,
    ffn=96,
    layers=2,
    local_heads=4,
    local_ffn=96,
    codebooks=5,
    codes=64,
    first_special=ORDINARY_TOKENS,
    vocabulary=ORDINARY_TOKENS + 40,
)
LOCAL = LocalShape(
    hidden=2560,
    heads=32,
    kv_heads=8,
    head_dim=128,
    ffn=9728,
    layers=36,
    local_heads=32,
    local_ffn=9728,
    codebooks=12,
    codes=1024,
    first_special=151_643,
    vocabulary=151_936,
)
"""MOSS-TTS-Local-Transformer v1.5."""
TINY_NANO = NanoShape(
    hidden=64, heads=2, ffn=128, layers=2, codebooks=4, codes=64, vocabulary=VOCABULARY
)
NANO = NanoShape(
    hidden=768, heads=12, ffn=3072, layers=12, codebooks=16, codes=1024, vocabulary=16_384
)
"""MOSS-TTS-Nano."""
REDUCED_NANO = replace(NANO, hidden=256, heads=4, ffn=1024, layers=3)
"""All codebooks, for several streams at a time on a few CPU cores."""


def local_config(shape: LocalShape) -> dict[str, Any]:
    """Return Local's config.json."""
    ids = shape.special_ids
    qwen3 = {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "initializer_range": 0.02,
        "intermediate_size": shape.ffn,
        "layer_types": ["full_attention"] * shape.layers,
        "max_position_embeddings": 40_960,
        "max_window_layers": shape.layers,
        "model_type": "qwen3",
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.kv_heads,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 1_000_000,
        "sliding_window": None,
        "tie_word_embeddings": True,
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": shape.vocabulary,
    }
    gpt2 = _gpt2(shape.hidden, shape.local_heads, shape.local_ffn, shape.vocabulary) | {
        "activation_function": "silu",
        "layer_norm_epsilon": 1e-06,
        "n_ctx": shape.codebooks + 1,
        "n_layer": 1,
        "n_positions": shape.codebooks + 1,
        "pad_token_id": ids["<|endoftext|>"],
        "rope_base": 1_000_000.0,
    }
    return _audio(shape.codebooks, shape.codes) | {
        "architectures": ["MossTTSLocalModel"],
        "attn_implementation": "flash_attention_2",
        "audio_assistant_gen_slot_token_id": ids["<|video_pad|>"],
        "audio_assistant_slot_token_id": ids["<|video_pad|>"],
        "audio_end_token_id": ids["<|audio_end|>"],
        "audio_pad_code": shape.codes,
        "audio_start_token_id": ids["<|audio_start|>"],
        "audio_tokenizer_name_or_path": "OpenMOSS-Team/MOSS-Audio-Tokenizer-v2",
        "audio_user_slot_token_id": ids["<|vision_pad|>"],
        "auto_map": {
            "AutoConfig": "configuration_moss_tts.MossTTSLocalConfig",
            "AutoModel": "modeling_moss_tts.MossTTSLocalModel",
            "AutoProcessor": "processing_moss_tts.MossTTSLocalProcessor",
        },
        "gpt2_config": gpt2,
        "hidden_size": shape.hidden,
        "im_end_token_id": ids["<|im_end|>"],
        "im_start_token_id": ids["<|im_start|>"],
        "initializer_range": 0.02,
        "language_config": qwen3,
        "local_hidden_size": shape.hidden,
        "local_text_head_mode": "binary",
        "local_transformer_attn_implementation": "flash_attention_2",
        "local_transformer_layers": 1,
        "model_type": "moss_tts_local",
        "pad_token_id": ids["<|endoftext|>"],
        "qwen3_config": qwen3,
        "sampling_rate": 48_000,
        "tie_word_embeddings": True,
        "vocab_size": shape.vocabulary,
    }


def nano_config(shape: NanoShape) -> dict[str, Any]:
    """Return Nano's config.json."""
    gpt2 = _gpt2(shape.hidden, shape.heads, shape.ffn, shape.vocabulary) | {
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-05,
        "n_ctx": 32_768,
        "n_layer": shape.layers,
        "n_positions": 32_768,
        "pad_token_id": 3,
        "rope_base": 10_000.0,
    }
    return _audio(shape.codebooks, shape.codes) | {
        "architectures": ["MossTTSNanoForCausalLM"],
        "attn_implementation": "flash_attention_2",
        "audio_assistant_slot_token_id": 9,
        "audio_end_token_id": 7,
        "audio_start_token_id": 6,
        "audio_tokenizer_pretrained_name_or_path": "OpenMOSS-Team/MOSS-Audio-Tokenizer-Nano",
        "audio_tokenizer_sample_rate": 48_000,
        "audio_tokenizer_type": "moss-audio-tokenizer-nano",
        "audio_user_slot_token_id": 8,
        "auto_map": {
            "AutoConfig": "configuration_moss_tts_nano.MossTTSNanoConfig",
            "AutoModel": "modeling_moss_tts_nano.MossTTSNanoForCausalLM",
            "AutoModelForCausalLM": "modeling_moss_tts_nano.MossTTSNanoForCausalLM",
        },
        "gpt2_config": gpt2,
        "hidden_size": shape.hidden,
        "im_end_token_id": 5,
        "im_start_token_id": 4,
        "initializer_range": 0.02,
        "local_transformer_attn_implementation": "flash_attention_2",
        "local_transformer_layers": 1,
        "max_position_embeddings": 32_768,
        "model_architecture": "global_local_transformer",
        "model_type": "moss_tts_nano",
        "pad_token_id": 3,
        "tokenizer_class": "MossTTSNanoSentencePieceTokenizer",
        "tokenizer_use_fast": False,
        "vocab_size": shape.vocabulary,
    }


def _gpt2(hidden: int, heads: int, ffn: int, vocabulary: int) -> dict[str, Any]:
    return {
        "add_cross_attention": False,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "initializer_range": 0.02,
        "model_type": "gpt2",
        "n_embd": hidden,
        "n_head": heads,
        "n_inner": ffn,
        "position_embedding_type": "rope",
        "reorder_and_upcast_attn": False,
        "resid_pdrop": 0.0,
        "scale_attn_by_inverse_layer_idx": False,
        "scale_attn_weights": True,
        "tie_word_embeddings": True,
        "use_cache": True,
        "vocab_size": vocabulary,
    }


def _audio(codebooks: int, codes: int) -> dict[str, Any]:
    return {
        "audio_codebook_sizes": [codes] * codebooks,
        "audio_pad_token_id": codes,
        "audio_vocab_size": codes,
        "n_vq": codebooks,
    }
