"""A byte-level BPE tokenizer in Qwen's file format, without the published vocabulary."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cantata_layers.token_text import list_byte_symbols

WHOLE_WORDS = ("assistant", "user")
"""Each is a single token, as in the published vocabulary."""
PAIRS = (("i", "n"), ("h", "e"), ("t", "he"), ("Ġ", "the"), ("e", "r"), ("o", "n"))


def _make_merges(words: Sequence[str]) -> list[tuple[str, str]]:
    merges = [(word[:end], word[end]) for word in words for end in range(1, len(word))]
    # Words may begin alike, and each token has one merge.
    output: dict[str, tuple[str, str]] = {}
    for left, right in (*merges, *PAIRS):
        output.setdefault(left + right, (left, right))
    return list(output.values())


def ordinary_tokens(words: Sequence[str]) -> int:
    """Size of the vocabulary without special tokens, where each of these words is a token."""
    return 256 + len(_make_merges(words))


def word_ids(words: Sequence[str]) -> dict[str, int]:
    merged = [left + right for left, right in _make_merges(words)]
    return {word: 256 + merged.index(word) for word in words}


ORDINARY_TOKENS = ordinary_tokens(WHOLE_WORDS)
"""The same for `WHOLE_WORDS`."""


def write_qwen_tokenizer(
    folder: Path,
    special: Mapping[str, int],
    fields: Mapping[str, Any] | None = None,
    words: Sequence[str] = WHOLE_WORDS,
    ordinary: Sequence[str] = (),
) -> None:
    """Write vocab.json, merges.txt and tokenizer_config.json.

    Args:
        special: the special tokens and their ids, behind the ordinary ones. Unused tokens fill the
            vocabulary up to the first of them and the gaps between them.
        fields: what tokenizer_config.json holds besides.
        words: each is a single token.
        ordinary: those of the special tokens that are words like others.
    """
    symbols = [*list_byte_symbols(), *(left + right for left, right in _make_merges(words))]
    symbols += [f"<unused{index}>" for index in range(len(symbols), min(special.values()))]
    vocabulary = {symbol: index for index, symbol in enumerate(symbols)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), "utf-8")
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in _make_merges(words))]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", "utf-8")
    config = {
        "add_bos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": _make_added_tokens(special, ordinary),
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": 131072,
        "pad_token": "<|endoftext|>",
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
        **(fields or {}),
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def _make_added_tokens(special: Mapping[str, int], ordinary: Sequence[str]) -> dict[str, Any]:
    by_id = {index: token for token, index in special.items()}
    # Ids are assigned in order, so fill the gaps between special tokens too.
    return {
        str(index): {
            "content": by_id.get(index, f"<|reserved_{index}|>"),
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": by_id.get(index) not in ordinary,
        }
        for index in range(min(by_id), max(by_id) + 1)
    }
