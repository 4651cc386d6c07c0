"""The special tokens and the tokenizer of a random checkpoint."""

from __future__ import annotations

from pathlib import Path

from cantata_layers.random_qwen_tokenizer import ordinary_tokens, word_ids, write_qwen_tokenizer

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
