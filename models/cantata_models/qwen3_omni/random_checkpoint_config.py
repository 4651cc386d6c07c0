"""The sizes, tokens and JSON files of a random checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cantata_layers.random_qwen_tokenizer import ordinary_tokens, word_ids, write_qwen_tokenizer


@dataclass(frozen=True, slots=True)
class Qwen3OmniStackShape:
    """A stack of layers."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int
    """Of an expert, or of the layers where there are none."""
    experts: int = 0
    experts_used: int = 0
    mrope_section: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """An encoder of sound or of pictures."""

    hidden: int
    layers: int
    heads: int
    inner: int


@dataclass(frozen=True, slots=True)
class Qwen3OmniShape:
    """A checkpoint."""

    thinker: Qwen3OmniStackShape
    audio: EncoderShape
    audio_channels: int
    """Of the convolutions in front."""
    vision: EncoderShape
    position_grid: int
    """Learned positions of pictures in each direction."""
    deepstack: tuple[int, ...]
    """Layers of the vision encoder whose output the thinker's first layers take."""
    accept_layer: int
    talker: Qwen3OmniStackShape
    shared_expert: int
    projection: int
    predictor: Qwen3OmniStackShape
    codes: int
    decoder: EncoderShape
    decoder_width: int


SMALL_ROPE = (6, 5, 5)
TINY = Qwen3OmniShape(
    thinker=Qwen3OmniStackShape(64, 4, 4, 2, 32, 32, 4, 2, SMALL_ROPE),
    audio=EncoderShape(32, 2, 2, 64),
    audio_channels=16,
    vision=EncoderShape(32, 3, 2, 64),
    position_grid=8,
    deepstack=(0, 1),
    accept_layer=3,
    talker=Qwen3OmniStackShape(64, 2, 4, 2, 32, 32, 4, 2, SMALL_ROPE),
    shared_expert=64,
    projection=96,
    predictor=Qwen3OmniStackShape(64, 2, 4, 2, 32, 96),
    codes=64,
    decoder=EncoderShape(48, 2, 4, 96),
    decoder_width=64,
)
"""For parity: seconds to make and to run."""
REDUCED = Qwen3OmniShape(
    thinker=Qwen3OmniStackShape(512, 8, 8, 2, 64, 256, 16, 4, (12, 10, 10)),
    audio=EncoderShape(256, 4, 4, 1024),
    audio_channels=96,
    vision=EncoderShape(256, 6, 4, 1024),
    position_grid=48,
    deepstack=(1, 2, 4),
    accept_layer=4,
    talker=Qwen3OmniStackShape(256, 6, 4, 2, 64, 128, 16, 4, (12, 10, 10)),
    shared_expert=256,
    projection=512,
    predictor=Qwen3OmniStackShape(256, 3, 4, 2, 64, 768),
    codes=2048,
    decoder=EncoderShape(256, 4, 4, 768),
    decoder_width=384,
)
"""Narrower and with fewer layers and experts than published, every part still of some weight."""
SIZES = {"tiny": TINY, "reduced": REDUCED}


ROLES = ("system", "assistant", "user")
OFFSETS = {
    "<|endoftext|>": 0,
    "<|im_start|>": 1,
    "<|im_end|>": 2,
    "<|vision_start|>": 9,
    "<|vision_end|>": 10,
    "<|vision_pad|>": 11,
    "<|image_pad|>": 12,
    "<|video_pad|>": 13,
    "<tool_call>": 14,
    "</tool_call>": 15,
    "<tool_response>": 22,
    "</tool_response>": 23,
    "<think>": 24,
    "</think>": 25,
    "<|audio_start|>": 26,
    "<|audio_end|>": 27,
    "<tts_pad>": 28,
    "<tts_text_bos>": 29,
    "<tts_text_eod>": 30,
    "<tts_text_bos_single>": 31,
    "<|audio_pad|>": 32,
}
"""Published ids, less that of the first."""
ORDINARY = (
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
"""Those that are words like others."""
NAMES = {
    "audio_bos_token": "<|audio_start|>",
    "audio_eos_token": "<|audio_end|>",
    "audio_token": "<|audio_pad|>",
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
}


def special_ids() -> dict[str, int]:
    """The special tokens' ids in the small vocabulary, in their published order."""
    first = ordinary_tokens(ROLES)
    return {token: first + offset for token, offset in OFFSETS.items()}


def role_ids() -> dict[str, int]:
    """The roles' ids in the small vocabulary."""
    return word_ids(ROLES)


def vocabulary_size() -> int:
    """Tokens of the small vocabulary, up to a multiple of 64."""
    return -(-(max(special_ids().values()) + 1) // 64) * 64


def write_tokenizer(folder: Path) -> None:
    """Write vocab.json, merges.txt and tokenizer_config.json."""
    write_qwen_tokenizer(folder, special_ids(), NAMES, ROLES, ORDINARY)


SPEAKERS = ("chelsie", "ethan", "aiden")
CODEBOOKS = 16
POSITIONS_PER_SECOND = 13
CODEC_OFFSETS = {"pad": 100, "bos": 101, "eos": 102, "nothink": 107, "think_bos": 108}
FIRST_SPEAKER = 253
"""Published, as the ids above, less the number of codes: 2048."""


def _stack(shape: Qwen3OmniStackShape) -> dict[str, Any]:
    return {
        "attention_bias": False,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.inner,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.kv_heads,
        "rms_norm_eps": 1e-06,
        "rope_theta": 1_000_000,
        "max_position_embeddings": 32_768,
    }


def _experts(shape: Qwen3OmniStackShape) -> dict[str, Any]:
    return {
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "moe_intermediate_size": shape.inner,
        "norm_topk_prob": True,
        "num_experts": shape.experts,
        "num_experts_per_tok": shape.experts_used,
        "rope_scaling": {
            "interleaved": True,
            "mrope_section": list(shape.mrope_section),
            "rope_type": "default",
            "type": "default",
        },
    }


def _media_ids() -> dict[str, int]:
    ids = special_ids()
    return {
        "audio_token_id": ids["<|audio_pad|>"],
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "audio_start_token_id": ids["<|audio_start|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "position_id_per_seconds": POSITIONS_PER_SECOND,
    }


def _thinker(shape: Qwen3OmniShape) -> dict[str, Any]:
    ids, text = special_ids(), shape.thinker
    return {
        **_media_ids(),
        "audio_end_token_id": ids["<|audio_end|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "user_token_id": role_ids()["user"],
        "model_type": "qwen3_omni_moe_thinker",
        "audio_config": {
            "conv_chunksize": 500,
            "d_model": shape.audio.hidden,
            "downsample_hidden_size": shape.audio_channels,
            "encoder_attention_heads": shape.audio.heads,
            "encoder_ffn_dim": shape.audio.inner,
            "encoder_layers": shape.audio.layers,
            "max_source_positions": 1500,
            "model_type": "qwen3_omni_moe_audio_encoder",
            "n_window": 50,
            "n_window_infer": 800,
            "num_mel_bins": 128,
            "output_dim": text.hidden,
        },
        "vision_config": {
            "deepstack_visual_indexes": list(shape.deepstack),
            "depth": shape.vision.layers,
            "hidden_act": "gelu_pytorch_tanh",
            "hidden_size": shape.vision.hidden,
            "in_channels": 3,
            "intermediate_size": shape.vision.inner,
            "model_type": "qwen3_omni_moe_vision_encoder",
            "num_heads": shape.vision.heads,
            "num_position_embeddings": shape.position_grid**2,
            "out_hidden_size": text.hidden,
            "patch_size": 16,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
        },
        "text_config": {
            **_stack(text),
            **_experts(text),
            "model_type": "qwen3_omni_moe_text",
            "vocab_size": vocabulary_size(),
        },
    }


def _talker(shape: Qwen3OmniShape) -> dict[str, Any]:
    base, predictor = shape.codes, shape.predictor
    codec = {name: base + offset for name, offset in CODEC_OFFSETS.items()}
    return {
        **_media_ids(),
        "accept_hidden_layer": shape.accept_layer,
        "code_predictor_config": {
            **_stack(predictor),
            "model_type": "qwen3_omni_moe_talker_code_predictor",
            "num_code_groups": CODEBOOKS,
            "vocab_size": shape.codes,
        },
        "codec_bos_id": codec["bos"],
        "codec_eos_token_id": codec["eos"],
        "codec_nothink_id": codec["nothink"],
        "codec_pad_id": codec["pad"],
        "codec_think_bos_id": codec["think_bos"],
        "codec_think_eos_id": codec["think_bos"] + 1,
        "model_type": "qwen3_omni_moe_talker",
        "num_code_groups": CODEBOOKS,
        "spatial_merge_size": 2,
        "speaker_id": {name: base + FIRST_SPEAKER + i for i, name in enumerate(SPEAKERS)},
        "text_config": {
            **_stack(shape.talker),
            **_experts(shape.talker),
            "intermediate_size": shape.projection,
            "model_type": "qwen3_omni_moe_talker_text",
            "shared_expert_intermediate_size": shape.shared_expert,
            "vocab_size": base + 1024,
        },
        "thinker_hidden_size": shape.thinker.hidden,
    }


def _code2wav(shape: Qwen3OmniShape) -> dict[str, Any]:
    decoder = shape.decoder
    return {
        "attention_bias": False,
        "codebook_size": shape.codes,
        "decoder_dim": shape.decoder_width,
        "hidden_act": "silu",
        "hidden_size": decoder.hidden,
        "intermediate_size": decoder.inner,
        "layer_scale_initial_scale": 0.01,
        "max_position_embeddings": 8000,
        "model_type": "qwen3_omni_moe_code2wav",
        "num_attention_heads": decoder.heads,
        "num_hidden_layers": decoder.layers,
        "num_key_value_heads": decoder.heads,
        "num_quantizers": CODEBOOKS,
        "rms_norm_eps": 1e-05,
        "rope_theta": 10_000,
        "sliding_window": 72,
        "upsample_rates": [8, 5, 4, 3],
        "upsampling_ratios": [2, 2],
    }


def model_config(shape: Qwen3OmniShape, speaks: bool = True) -> dict[str, Any]:
    """config.json, of Instruct or of a checkpoint that only writes."""
    ids, roles = special_ids(), role_ids()
    config: dict[str, Any] = {
        "architectures": ["Qwen3OmniMoeForConditionalGeneration"],
        "assistant_token_id": roles["assistant"],
        "enable_audio_output": speaks,
        "im_end_token_id": ids["<|im_end|>"],
        "im_start_token_id": ids["<|im_start|>"],
        "model_type": "qwen3_omni_moe",
        "system_token_id": roles["system"],
        "thinker_config": _thinker(shape),
        "tts_bos_token_id": ids["<tts_text_bos>"],
        "tts_eos_token_id": ids["<tts_text_eod>"],
        "tts_pad_token_id": ids["<tts_pad>"],
        "user_token_id": roles["user"],
    }
    if speaks:
        config |= {"talker_config": _talker(shape), "code2wav_config": _code2wav(shape)}
    return config


GENERATION_CONFIG = {
    "do_sample": True,
    "repetition_penalty": 1.0,
    "talker_do_sample": True,
    "talker_max_new_tokens": 4096,
    "talker_repetition_penalty": 1.05,
    "talker_temperature": 0.9,
    "talker_top_k": 50,
    "talker_top_p": 1.0,
    "temperature": 0.7,
    "top_k": 20,
    "top_p": 0.8,
}
PREPROCESSOR_CONFIG = {
    "chunk_length": 300,
    "dither": 0.0,
    "feature_extractor_type": "WhisperFeatureExtractor",
    "feature_size": 128,
    "hop_length": 160,
    "image_mean": [0.5, 0.5, 0.5],
    "image_processor_type": "Qwen2VLImageProcessor",
    "image_std": [0.5, 0.5, 0.5],
    "max_pixels": 12_845_056,
    "merge_size": 2,
    "min_pixels": 3136,
    "n_fft": 400,
    "n_samples": 4_800_000,
    "nb_max_frames": 30_000,
    "padding_side": "right",
    "padding_value": 0.0,
    "patch_size": 16,
    "processor_class": "Qwen3OmniMoeProcessor",
    "return_attention_mask": True,
    "sampling_rate": 16_000,
    "temporal_patch_size": 2,
}
CHAT_TEMPLATE = """\
{%- if tools -%}{{ "<|im_start|>system\\n" }}
{%- if messages[0].role == "system" -%}{{ messages[0].content + "\\n" }}{%- endif -%}
{{ "You may call these tools:" }}
{%- for tool in tools -%}{{ "\\n" + tool | tojson }}{%- endfor -%}
{{ '\\nWrite <tool_call>\\n{"name": name, "arguments": object}\\n</tool_call>.<|im_end|>\\n' }}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == "tool" -%}
{%- if messages[loop.index0 - 1].role != "tool" -%}<|im_start|>user{%- endif -%}
{{ "\\n<tool_response>\\n" + message.content + "\\n</tool_response>" }}
{%- if loop.last or messages[loop.index0 + 1].role != "tool" -%}{{ "<|im_end|>\\n" }}{%- endif -%}
{%- elif not (tools and loop.first and message.role == "system") -%}
{{ "<|im_start|>" + message.role + "\\n" }}
{%- if message.content is string -%}{{ message.content }}{%- else -%}
{%- for part in message.content -%}
{%- if part.type == "audio" -%}<|audio_start|><|audio_pad|><|audio_end|>
{%- elif part.type == "image" -%}<|vision_start|><|image_pad|><|vision_end|>
{%- elif part.type == "video" -%}<|vision_start|><|video_pad|><|vision_end|>
{%- else -%}{{ part.text }}{%- endif -%}
{%- endfor -%}{%- endif -%}
{%- for call in message.tool_calls or () -%}
{%- if message.content or not loop.first -%}{{ "\\n" }}{%- endif -%}
{{ '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments + "}\\n</tool_call>" }}
{%- endfor -%}{{ "<|im_end|>\\n" }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ "<|im_start|>assistant\\n" }}{%- endif -%}
"""
"""The published dialogue's form; the words about tools are other ones."""
