"""The special tokens and the tokenizer of a random checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

from cantata_layers.random_qwen_tokenizer import ORDINARY_TOKENS, write_qwen_tokenizer

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
