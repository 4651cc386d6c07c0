"""The JSON files of a random checkpoint, as the publisher's and as transformers writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cantata_layers.random_qwen_tokenizer import ordinary_tokens

WORDS = ("assistant", "language", "English", "Chinese", "system", "user")
"""Each is a single token."""
OFFSETS = {
    "<|endoftext|>": 0,
    "<|im_start|>": 1,
    "<|im_end|>": 2,
    "<|audio_start|>": 26,
    "<|audio_end|>": 27,
    "<|audio_pad|>": 33,
    "<asr_text>": 61,
    "<timestamp>": 62,
}
"""Published ids, less that of the first."""
ORDINARY = ("<asr_text>", "<timestamp>")
"""Those that are words like others."""
TOKENIZER_FIELDS = {
    "audio_bos_token": "<|audio_start|>",
    "audio_eos_token": "<|audio_end|>",
    "audio_token": "<|audio_pad|>",
}
LANGUAGES = ("Chinese", "English", "Cantonese", "German", "Japanese", "Filipino")
"""Fewer than the published checkpoints', so that some are unknown."""


def token_ids() -> dict[str, int]:
    """The special tokens' ids in the small vocabulary, in their published order."""
    first = ordinary_tokens(WORDS)
    return {token: first + offset for token, offset in OFFSETS.items()}


def _vocabulary_size() -> int:
    """Tokens of the small vocabulary, up to a multiple of 64."""
    return -(-(max(token_ids().values()) + 1) // 64) * 64


@dataclass(frozen=True, slots=True)
class CheckpointSize:
    """Sizes of encoder and language model."""

    encoder_layers: int
    encoder_width: int
    encoder_heads: int
    channels: int
    """Of the convolutions in front of the encoder."""
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int
    vocabulary: int

    def encoder(self) -> dict[str, Any]:
        """`audio_config`, but for its type."""
        return {
            "activation_function": "gelu",
            "d_model": self.encoder_width,
            "downsample_hidden_size": self.channels,
            "encoder_attention_heads": self.encoder_heads,
            "encoder_ffn_dim": 4 * self.encoder_width,
            "encoder_layers": self.encoder_layers,
            "n_window": 50,
            "n_window_infer": 800,
            "num_mel_bins": 128,
            "output_dim": self.width,
            "scale_embedding": False,
        }

    def text(self) -> dict[str, Any]:
        """`text_config`, but for its type and rotary positions."""
        return {
            "attention_bias": False,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "hidden_size": self.width,
            "intermediate_size": self.inner,
            "max_position_embeddings": 65_536,
            "num_attention_heads": self.heads,
            "num_hidden_layers": self.layers,
            "num_key_value_heads": self.kv_heads,
            "rms_norm_eps": 1e-06,
            "vocab_size": self.vocabulary,
        }


TINY = CheckpointSize(2, 32, 2, 16, 3, 64, 4, 2, 32, 96, _vocabulary_size())
"""For parity: a second to make and to run."""
SIZES = {
    "tiny": TINY,
    "0.6b": CheckpointSize(18, 896, 14, 480, 28, 1024, 16, 8, 128, 3072, 151_936),
    "1.7b": CheckpointSize(24, 1024, 16, 480, 28, 2048, 16, 8, 128, 6144, 151_936),
}
"""The last two as published, but for the tokenizer; they take as much time and memory."""
THETA = 1_000_000


def published_config(size: CheckpointSize, *, is_tied: bool) -> dict[str, Any]:
    """config.json with all of the model in a section, and rotary positions with three axes."""
    ids = token_ids()
    return {
        "architectures": ["Qwen3ASRForConditionalGeneration"],
        "model_type": "qwen3_asr",
        "support_languages": list(LANGUAGES),
        "thinker_config": {
            "audio_config": {
                **size.encoder(),
                "conv_chunksize": 500,
                "max_source_positions": 1500,
                "model_type": "qwen3_asr_audio_encoder",
            },
            "audio_end_token_id": ids["<|audio_end|>"],
            "audio_start_token_id": ids["<|audio_start|>"],
            "audio_token_id": ids["<|audio_pad|>"],
            "model_type": "qwen3_asr_thinker",
            "text_config": {
                **size.text(),
                "model_type": "qwen3_asr_text",
                "rope_scaling": {
                    "interleaved": True,
                    "mrope_interleaved": True,
                    "mrope_section": [6, 5, 5] if size.head_dim == 32 else [24, 20, 20],
                    "rope_type": "default",
                    "type": "default",
                },
                "rope_theta": THETA,
                "tie_word_embeddings": is_tied,
            },
        },
    }


CLASSES = 64
"""Of the aligner's time; the published one has 5000."""


def aligner_config(size: CheckpointSize) -> dict[str, Any]:
    """The publisher's config.json of a forced aligner."""
    config = published_config(size, is_tied=False)
    config["thinker_config"] |= {"classify_num": CLASSES, "model_type": "qwen3_forced_aligner"}
    del config["support_languages"]
    return config | {
        "timestamp_segment_time": 80,
        "timestamp_token_id": token_ids()["<timestamp>"],
    }


def saved_again_aligner_config(size: CheckpointSize) -> dict[str, Any]:
    """config.json of a forced aligner as transformers writes it."""
    return saved_again_config(size, is_tied=False) | {
        "architectures": ["Qwen3ASRForTokenClassification"],
        "id2label": {str(number): f"LABEL_{number}" for number in range(CLASSES)},
        "label2id": {f"LABEL_{number}": number for number in range(CLASSES)},
    }


def saved_again_config(size: CheckpointSize, *, is_tied: bool) -> dict[str, Any]:
    """config.json as transformers writes it."""
    ids = token_ids()
    return {
        "architectures": ["Qwen3ASRForConditionalGeneration"],
        "audio_config": {
            **size.encoder(),
            "max_position_embeddings": 13,
            "model_type": "qwen3_asr_encoder",
        },
        "audio_token_id": ids["<|audio_pad|>"],
        "eos_token_id": [ids["<|endoftext|>"], ids["<|im_end|>"]],
        "model_type": "qwen3_asr",
        "pad_token_id": ids["<|im_end|>"],
        "text_config": {
            **size.text(),
            "model_type": "qwen3",
            "rope_parameters": {"rope_theta": THETA, "rope_type": "default"},
            "tie_word_embeddings": is_tied,
        },
        "tie_word_embeddings": is_tied,
        "timestamp_token_id": ids["<timestamp>"],
    }


def generation_config() -> dict[str, Any]:
    """generation_config.json."""
    ids = token_ids()
    return {
        "do_sample": False,
        "eos_token_id": [ids["<|endoftext|>"], ids["<|im_end|>"]],
        "pad_token_id": ids["<|endoftext|>"],
    }


PREPROCESSOR = {
    "chunk_length": 30,
    "dither": 0.0,
    "feature_extractor_type": "WhisperFeatureExtractor",
    "feature_size": 128,
    "hop_length": 160,
    "n_fft": 400,
    "n_samples": 480_000,
    "nb_max_frames": 3_000,
    "padding_side": "right",
    "padding_value": 0.0,
    "processor_class": "Qwen3ASRProcessor",
    "return_attention_mask": True,
}
PROCESSOR = {
    "feature_extractor": {
        "chunk_length": 30,
        "dither": 0.0,
        "feature_extractor_type": "Qwen3ASRFeatureExtractor",
        "feature_size": 128,
        "hop_length": 160,
        "min_length": 8_000,
        "n_fft": 400,
        "n_samples": 480_000,
        "n_window": 50,
        "padding_side": "right",
        "padding_value": 0.0,
        "return_attention_mask": True,
        "sampling_rate": 16_000,
    },
    "processor_class": "Qwen3ASRProcessor",
    "timestamp_segment_time": 80.0,
}
"""processor_config.json, where transformers puts the extractor's settings."""
CHAT_TEMPLATE = """\
{%- set said = namespace(system="", answer="") -%}
{%- for message in messages -%}
{%- if message.role != "user" -%}
{%- set text = message.content if message.content is string else message.content[0].text -%}
{%- if message.role == "system" -%}{%- set said.system = text -%}
{%- else -%}{%- set said.answer = text -%}{%- endif -%}
{%- endif -%}
{%- endfor -%}
{{ "<|im_start|>system\\n" + said.system + "<|im_end|>\\n<|im_start|>user\\n" }}
{{- "<|audio_start|><|audio_pad|><|audio_end|><|im_end|>\\n<|im_start|>assistant\\n" }}
{{- said.answer }}
"""
"""Lays out the published dialogue."""
