"""The tokenizer of a random checkpoint: the words of the templates are single tokens, as published,
so as many tokens are in front of a prompt."""

from __future__ import annotations

import re
from pathlib import Path

from cantata_layers.qwen_image.text.templates import CHANGE, DESCRIBE
from cantata_layers.random_qwen_tokenizer import ordinary_tokens, write_qwen_tokenizer

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
