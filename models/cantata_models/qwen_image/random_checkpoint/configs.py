"""The JSON files of a random checkpoint, and its tokenizer.

The words of the templates are single tokens, as published, so as many tokens are in front of a
prompt.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from cantata_layers.qwen_image.text.prompts import CHANGE, DESCRIBE
from cantata_layers.random_qwen_tokenizer import ordinary_tokens, write_qwen_tokenizer
from cantata_models.qwen_image.random_checkpoint.shapes import QwenImageShape, Variant

OFFSETS = {
    "<|endoftext|>": 0,
    "<|im_start|>": 1,
    "<|im_end|>": 2,
    "<|vision_start|>": 9,
    "<|vision_end|>": 10,
    "<|vision_pad|>": 11,
    "<|image_pad|>": 12,
    "<|video_pad|>": 13,
}
"""Published ids, less that of the first."""
PIECES = re.compile(r"'s| \(|[.,:)]+| ?\w+")
SPACE = "Ġ"
"""How the tokenizer's files spell a space."""


def words() -> tuple[str, ...]:
    """Words of the templates; those behind a space first, so that none splits another."""
    found = dict.fromkeys(PIECES.findall(DESCRIBE + "\n" + CHANGE))
    spelled = [word.replace(" ", SPACE) for word in found]
    behind = [word for word in spelled if word.startswith(SPACE)]
    return (*behind, *(word for word in spelled if word not in behind), *ROLES)


ROLES = ("system", "user", "assistant")


def special_ids() -> dict[str, int]:
    """The special tokens' ids in the small vocabulary, in their published order."""
    first = ordinary_tokens(words())
    return {token: first + offset for token, offset in OFFSETS.items()}


def vocabulary_size() -> int:
    """Tokens of the small vocabulary, up to a multiple of 64."""
    return -(-(max(special_ids().values()) + 1) // 64) * 64


def write_tokenizer(folder: Path) -> None:
    """Write vocab.json, merges.txt and tokenizer_config.json."""
    folder.mkdir(exist_ok=True)
    fields = {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>"}
    write_qwen_tokenizer(folder, special_ids(), fields, words())


MEANS = (
    *(-0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508),
    *(0.4134, -0.0715, 0.5517, -0.3632, -0.1922, -0.9497, 0.2503, -0.2921),
)
STDS = (
    *(2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743),
    *(3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160),
)
"""Of the published autoencoder."""
SCHEDULE: dict[str, Any] = {
    "_class_name": "FlowMatchEulerDiscreteScheduler",
    "base_image_seq_len": 256,
    "base_shift": 0.5,
    "invert_sigmas": False,
    "max_image_seq_len": 8192,
    "max_shift": 0.9,
    "num_train_timesteps": 1000,
    "shift": 1.0,
    "shift_terminal": 0.02,
    "stochastic_sampling": False,
    "time_shift_type": "exponential",
    "use_beta_sigmas": False,
    "use_dynamic_shifting": True,
    "use_exponential_sigmas": False,
    "use_karras_sigmas": False,
}
PREPROCESSOR: dict[str, Any] = {
    "do_convert_rgb": True,
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_processor_type": "Qwen2VLImageProcessor",
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "max_pixels": 12845056,
    "merge_size": 2,
    "min_pixels": 3136,
    "patch_size": 14,
    "processor_class": "Qwen2VLProcessor",
    "resample": 3,
    "rescale_factor": 0.00392156862745098,
    "size": {"longest_edge": 12845056, "shortest_edge": 3136},
    "temporal_patch_size": 2,
}
DIFFUSERS, TRANSFORMERS = "diffusers", "transformers"


def index(variant: Variant) -> dict[str, Any]:
    """model_index.json."""
    parts = {
        "scheduler": [DIFFUSERS, "FlowMatchEulerDiscreteScheduler"],
        "text_encoder": [TRANSFORMERS, "Qwen2_5_VLForConditionalGeneration"],
        "tokenizer": [TRANSFORMERS, "Qwen2Tokenizer"],
        "transformer": [DIFFUSERS, "QwenImageTransformer2DModel"],
        "vae": [DIFFUSERS, "AutoencoderKLQwenImage"],
    }
    if variant.family.takes_pictures:
        parts["processor"] = [TRANSFORMERS, "Qwen2VLProcessor"]
    return {"_class_name": variant.family.value, "_diffusers_version": "0.36.0", **parts}


def transformer(shape: QwenImageShape, variant: Variant) -> dict[str, Any]:
    """transformer/config.json; the published one has a key that nobody reads."""
    still = {"zero_cond_t": True} if variant.still_references else {}
    return {
        "_class_name": "QwenImageTransformer2DModel",
        "attention_head_dim": shape.head_dim,
        "axes_dims_rope": list(shape.rope_axes),
        "guidance_embeds": False,
        "in_channels": 64,
        "joint_attention_dim": shape.text_width,
        "num_attention_heads": shape.heads,
        "num_layers": shape.layers,
        "out_channels": 16,
        "patch_size": 2,
        "pooled_projection_dim": 768,
        **still,
    }


def vae(shape: QwenImageShape) -> dict[str, Any]:
    """vae/config.json."""
    return {
        "_class_name": "AutoencoderKLQwenImage",
        "attn_scales": [],
        "base_dim": shape.vae_width,
        "dim_mult": [1, 2, 4, 4],
        "dropout": 0.0,
        "latents_mean": list(MEANS),
        "latents_std": list(STDS),
        "num_res_blocks": shape.vae_blocks,
        "temperal_downsample": [False, True, True],
        "z_dim": 16,
    }


def text_encoder(shape: QwenImageShape) -> dict[str, Any]:
    """text_encoder/config.json, flat as published."""
    special = special_ids()
    return {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "attention_dropout": 0.0,
        "bos_token_id": special["<|endoftext|>"],
        "eos_token_id": special["<|im_end|>"],
        "hidden_act": "silu",
        "hidden_size": shape.text_width,
        "image_token_id": special["<|image_pad|>"],
        "intermediate_size": shape.text_inner,
        "max_position_embeddings": 128_000,
        "model_type": "qwen2_5_vl",
        "num_attention_heads": shape.text_heads,
        "num_hidden_layers": shape.text_layers,
        "num_key_value_heads": shape.text_kv_heads,
        "rms_norm_eps": 1e-6,
        "rope_scaling": {
            "mrope_section": list(shape.mrope_section),
            "rope_type": "default",
            "type": "default",
        },
        "rope_theta": 1_000_000.0,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "video_token_id": special["<|video_pad|>"],
        "vision_config": _vision(shape),
        "vision_end_token_id": special["<|vision_end|>"],
        "vision_start_token_id": special["<|vision_start|>"],
        "vocab_size": vocabulary_size(),
    }


def _vision(shape: QwenImageShape) -> dict[str, Any]:
    return {
        "depth": shape.vision_layers,
        "fullatt_block_indexes": [shape.vision_layers - 1],
        "hidden_act": "silu",
        "hidden_size": shape.vision_width,
        "in_channels": 3,
        "intermediate_size": 2 * shape.vision_width,
        "model_type": "qwen2_5_vl",
        "num_heads": shape.vision_heads,
        "out_hidden_size": shape.text_width,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "tokens_per_second": 2,
        "window_size": 112,
    }
