"""Checkpoints of seeded random weights in the published format, for tests (`python -m`).

Names and shapes are those of transformers' model, built without memory.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, Qwen2_5OmniForConditionalGeneration

from cantata_layers.random_qwen_tokenizer import ORDINARY_TOKENS, write_qwen_tokenizer
from cantata_layers.random_rules import Rules, gain, specify, upsampling, values
from cantata_layers.random_tensors import TensorSpec, write_json, write_tensors
from cantata_models.qwen25_omni.speakers import FILE

TEXT_TOKENS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    *("<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>"),
    *("<|vision_bos|>", "<|vision_eos|>", "<|vision_pad|>", "<|IMAGE|>", "<|VIDEO|>"),
    *("<tts_pad>", "<tts_text_bos>", "<tts_text_eod>", "<chelsie>", "<ethan>"),
)
"""The special tokens that a conversation and its speech need. In the published vocabulary the last
five have no names."""
PUBLISHED_IDS = (
    *(151_643, 151_644, 151_645),
    *(151_646, 151_647, 151_648),
    *(151_652, 151_653, 151_654, 151_655, 151_656),
    *(151_859, 151_860, 151_861, 151_872, 151_873),
)


@dataclass(frozen=True, slots=True)
class Qwen25OmniShape:
    """The values that differ between sizes."""

    token_ids: tuple[int, ...]
    """Of `TEXT_TOKENS`."""
    text_vocab: int
    text: dict[str, Any]
    audio: dict[str, Any]
    vision: dict[str, Any]
    talker: dict[str, Any]
    control_codes: tuple[int, int, int, int]
    """The talker's pad, start, end and mask."""
    dit: dict[str, Any]
    vocoder: dict[str, Any]
    mrope_section: tuple[int, int, int]


def _stack(hidden: int, layers: int, heads: int, kv_heads: int, ffn: int) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": ffn,
    }


TINY = Qwen25OmniShape(
    token_ids=tuple(range(ORDINARY_TOKENS, ORDINARY_TOKENS + len(TEXT_TOKENS))),
    text_vocab=320,
    text=_stack(128, 2, 4, 2, 128),
    audio={
        "d_model": 64,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 64,
        "output_dim": 128,
        "n_window": 100,
    },
    vision={
        "depth": 2,
        "hidden_size": 64,
        "num_heads": 2,
        "intermediate_size": 64,
        "out_hidden_size": 128,
        "fullatt_block_indexes": [1],
    },
    talker={
        **_stack(64, 2, 4, 2, 96),
        "head_dim": 32,
        "embedding_size": 128,
        "vocab_size": 68,
    },
    control_codes=(64, 65, 66, 67),
    dit={
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "head_dim": 16,
        "emb_dim": 32,
        "num_embeds": 63,
        "look_ahead_layers": [2],
        "look_backward_layers": [0, 3],
        "enc_channels": [16, 16, 16, 16, 48],
        "enc_dim": 16,
        "enc_attention_channels": 8,
        "enc_se_channels": 8,
    },
    vocoder={
        "upsample_initial_channel": 128,
        "resblock_kernel_sizes": [3, 11],
        "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5]],
    },
    mrope_section=(6, 5, 5),
)
"""As narrow as vLLM's layers and the format allow. As published, the talker's heads together are
wider than its rows, and layers near the first, the middle and the last see other blocks."""
PUBLISHED = Qwen25OmniShape(
    token_ids=PUBLISHED_IDS,
    text_vocab=152_064,
    text=_stack(3584, 28, 28, 4, 18_944),
    audio={},
    vision={},
    talker={
        **_stack(896, 24, 12, 4, 18_944),
        "head_dim": 128,
        "embedding_size": 3584,
        "vocab_size": 8448,
    },
    control_codes=(8292, 8293, 8294, 8296),
    dit={},
    vocoder={},
    mrope_section=(16, 24, 24),
)
"""Qwen2.5-Omni-7B."""


def token_ids(shape: Qwen25OmniShape) -> dict[str, int]:
    """The special tokens' ids."""
    return dict(zip(TEXT_TOKENS, shape.token_ids, strict=True))


def _rotary(shape: Qwen25OmniShape) -> dict[str, Any]:
    return {
        "rope_theta": 1_000_000.0,
        "rope_scaling": {
            "mrope_section": list(shape.mrope_section),
            "rope_type": "default",
            "type": "default",
        },
    }


def _media(shape: Qwen25OmniShape) -> dict[str, int]:
    ids = token_ids(shape)
    return {
        "audio_token_index": ids["<|AUDIO|>"],
        "audio_start_token_id": ids["<|audio_bos|>"],
        "audio_end_token_id": ids["<|audio_eos|>"],
        "image_token_index": ids["<|IMAGE|>"],
        "video_token_index": ids["<|VIDEO|>"],
        "vision_start_token_id": ids["<|vision_bos|>"],
        "vision_end_token_id": ids["<|vision_eos|>"],
        "position_id_per_seconds": 25,
        "seconds_per_chunk": 2,
    }


def _thinker(shape: Qwen25OmniShape) -> dict[str, Any]:
    text = {
        "model_type": "qwen2_5_omni_text",
        "vocab_size": shape.text_vocab,
        "max_position_embeddings": 32_768,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-06,
        "tie_word_embeddings": False,
        **shape.text,
        **_rotary(shape),
    }
    return {
        "model_type": "qwen2_5_omni_thinker",
        "audio_config": {"model_type": "qwen2_5_omni_audio_encoder", **shape.audio},
        "vision_config": {"model_type": "qwen2_5_omni_vision_encoder", **shape.vision},
        "text_config": text,
        **_media(shape),
    }


def _talker(shape: Qwen25OmniShape) -> dict[str, Any]:
    ids = token_ids(shape)
    pad, start, end, mask = shape.control_codes
    return {
        "model_type": "qwen2_5_omni_talker",
        "max_position_embeddings": 32_768,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-06,
        "tts_codec_pad_token_id": pad,
        "tts_codec_start_token_id": start,
        "tts_codec_end_token_id": end,
        "tts_codec_mask_token_id": mask,
        "tts_text_pad_token_id": ids["<tts_pad>"],
        "tts_text_start_token_id": ids["<tts_text_bos>"],
        "tts_text_end_token_id": ids["<tts_text_eod>"],
        "spatial_merge_size": 2,
        **shape.talker,
        **_media(shape),
        **_rotary(shape),
    }


def model_config(shape: Qwen25OmniShape) -> dict[str, Any]:
    """config.json."""
    return {
        "architectures": ["Qwen2_5OmniModel"],
        "model_type": "qwen2_5_omni",
        "enable_audio_output": True,
        "thinker_config": _thinker(shape),
        "talker_config": _talker(shape),
        "token2wav_config": {
            "model_type": "qwen2_5_omni_token2wav",
            "dit_config": {"model_type": "qwen2_5_omni_dit", **shape.dit},
            "bigvgan_config": {"model_type": "qwen2_5_omni_bigvgan", **shape.vocoder},
        },
        "torch_dtype": "float32",
    }


def generation_config(shape: Qwen25OmniShape) -> dict[str, Any]:
    """generation_config.json, with which an answer ends."""
    ids = token_ids(shape)
    return {"eos_token_id": ids["<|im_end|>"], "pad_token_id": ids["<|endoftext|>"]}


PREPROCESSOR_CONFIG = {
    "chunk_length": 300,
    "dither": 0.0,
    "feature_extractor_type": "WhisperFeatureExtractor",
    "feature_size": 128,
    "hop_length": 160,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_processor_type": "Qwen2VLImageProcessor",
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "max_pixels": 12_845_056,
    "merge_size": 2,
    "min_pixels": 3136,
    "n_fft": 400,
    "n_samples": 4_800_000,
    "nb_max_frames": 30_000,
    "padding_side": "left",
    "padding_value": 0.0,
    "patch_size": 14,
    "processor_class": "Qwen2_5OmniProcessor",
    "return_attention_mask": True,
    "sampling_rate": 16_000,
    "temporal_patch_size": 2,
}
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if loop.first and message['role'] != 'system' %}"
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    "{% endif %}"
    "<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}"
    "{% elif part['type'] == 'image' %}<|vision_bos|><|IMAGE|><|vision_eos|>"
    "{% elif part['type'] == 'audio' %}<|audio_bos|><|AUDIO|><|audio_eos|>"
    "{% elif part['type'] == 'video' %}<|vision_bos|><|VIDEO|><|vision_eos|>"
    "{% endif %}{% endfor %}{% endif %}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Lays a conversation out as the published template does."""


RULES: Rules = {
    # The mel spectrogram lies around -4, where the vocoder does not clip it.
    r"proj_out\.bias$": values(1.0, -4.0),
    r"proj_out\.weight$": gain(2.0),
    r"conv_post\.weight$": gain(0.1),
    r"ups\.\d+\.0\.weight$": upsampling(taps=2),
    r"act\.(?:alpha|beta)$": values(0.3),
    # Open gates: what the blocks of attention tell each other must be heard.
    r"attn_norm\.linear\.weight$": gain(1.0),
    r"attn_norm\.linear\.bias$": values(0.7),
    r"norm_out\.linear\.weight$": gain(0.5),
    r"(?:embed_tokens|codec_embed)\.weight$": values(1.0),
    r"ln_post\.weight$": values(1.0),
    r"(?:q_proj|k_proj|to_q|to_k|\.q|\.k|o_proj|to_out\.0|out_proj)\.weight$": gain(2.0),
    r"(?:lm_head|codec_head)\.weight$": gain(3.0),
    r"convs2\.\d+\.weight$": gain(0.4),
}


def checkpoint_tensors(config: Mapping[str, Any]) -> Iterator[TensorSpec]:
    """Yield every tensor of a checkpoint with this config.json."""
    arguments = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device("meta"):
        model = Qwen2_5OmniForConditionalGeneration(
            AutoConfig.for_model("qwen2_5_omni", **arguments)
        )
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    yield from specify(shapes, RULES)


SPEAKERS = {"Chelsie": ("<chelsie>", 57), "Ethan": ("<ethan>", 44)}
"""With the token that announces each, and the frames of its spectrogram."""
VECTOR_SIZE, MELS = 192, 80


def write_checkpoint(
    folder: Path,
    shape: Qwen25OmniShape,
    seed: int,
    dtype: torch.dtype = torch.float32,
    *,
    end_gain: float = 1.0,
) -> Path:
    """Write a checkpoint into `folder` and return it.

    Args:
        folder: made if it is missing.
        shape: one of `configs`.
        end_gain: of the row that scores the end of an answer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = model_config(shape)
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", generation_config(shape))
    write_json(folder / "preprocessor_config.json", PREPROCESSOR_CONFIG)
    write_json(folder / "chat_template.json", {"chat_template": CHAT_TEMPLATE})
    write_qwen_tokenizer(folder, token_ids(shape), {"processor_class": "Qwen2_5OmniProcessor"})
    path = folder / "model.safetensors"
    write_tensors(path, checkpoint_tensors(config), seed, dtype)
    if end_gain != 1.0:
        _scale_end(path, token_ids(shape)["<|im_end|>"], end_gain)
    write_speakers(folder / FILE, token_ids(shape), seed)
    return folder


def _scale_end(path: Path, token: int, gain: float) -> None:
    tensors = load_file(path)
    tensors["thinker.lm_head.weight"][token] *= gain
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)


def write_speakers(path: Path, tokens: dict[str, int], seed: int) -> None:
    """Write spk_dict.pt."""
    speakers = {}
    for name, (token, frames) in SPEAKERS.items():
        source = np.random.RandomState(zlib.crc32(f"{seed}:{name}".encode()))
        vector = source.random_sample((1, VECTOR_SIZE)) * 4 - 2
        # Each band of the spectrogram has a level of its own, as a voice's does.
        level = source.random_sample((1, 1, MELS)) * 4 - 7
        mel = level + source.random_sample((1, frames, MELS)) * 3
        speakers[name] = {
            "bos_token": tokens[token],
            "cond": torch.from_numpy(vector).float(),
            "ref_mel": torch.from_numpy(mel).float(),
        }
    torch.save(speakers, path)


def write_tiny(folder: Path) -> None:
    """Write a tiny checkpoint that speaks."""
    write_checkpoint(folder, TINY, seed=1)


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.qwen25_omni.random_checkpoint",
        description="Write a tiny checkpoint with random weights (4 MB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(write_checkpoint(arguments.folder, TINY, arguments.seed))


if __name__ == "__main__":
    main()
