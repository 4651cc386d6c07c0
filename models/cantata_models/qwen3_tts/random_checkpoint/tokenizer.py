"""A byte-level BPE tokenizer in Qwen's file format, without the published vocabulary."""

from __future__ import annotations

import json
from pathlib import Path

WHOLE_WORDS = ("assistant", "user")
"""Each is a single token, as the prompt template requires."""
PAIRS = (("i", "n"), ("h", "e"), ("t", "he"), ("Ġ", "the"), ("e", "r"), ("o", "n"))
SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tts_pad>",
    "<tts_text_bos>",
    "<tts_text_eod>",
)


def _byte_symbols() -> list[str]:
    """Return one printable character per byte, as in byte-level BPE."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    symbols = {byte: chr(byte) for byte in printable}
    symbols |= {byte: chr(256 + rank) for rank, byte in enumerate(others)}
    return [symbols[byte] for byte in range(256)]


def _merges() -> list[tuple[str, str]]:
    merges = [(word[:end], word[end]) for word in WHOLE_WORDS for end in range(1, len(word))]
    return [*merges, *PAIRS]


def _special_ids(first_special: int | None) -> tuple[int, dict[str, int]]:
    """Return the number of ordinary tokens and the ids of the special ones."""
    least = 256 + len(_merges())
    if first_special is None:
        return least, {token: least + rank for rank, token in enumerate(SPECIAL)}
    # As published: the first three follow the vocabulary, and those for speech come 28 later.
    ids = [first_special + offset for offset in (0, 1, 2, 28, 29, 30)]
    return first_special, dict(zip(SPECIAL, ids, strict=True))


def special_ids(first_special: int | None = None) -> dict[str, int]:
    """Return the ids of `SPECIAL`. `first_special` pads the vocabulary to there, as published."""
    return _special_ids(first_special)[1]


def write_tokenizer(folder: Path, first_special: int | None = None) -> None:
    """Write vocab.json, merges.txt, tokenizer_config.json and preprocessor_config.json."""
    size, special = _special_ids(first_special)
    symbols = [*_byte_symbols(), *(left + right for left, right in _merges())]
    symbols += [f"<unused{index}>" for index in range(len(symbols), size)]
    vocabulary = {symbol: index for index, symbol in enumerate(symbols)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), "utf-8")
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in _merges())]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", "utf-8")
    by_id = {index: token for token, index in special.items()}
    # Ids are assigned in order, so fill the gaps between special tokens too.
    every = range(min(by_id), max(by_id) + 1)
    added = {
        str(index): {
            "content": by_id.get(index, f"<|reserved_{index}|>"),
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": True,
        }
        for index in every
    }
    config = {
        "add_bos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": added,
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": 131072,
        "pad_token": "<|endoftext|>",
        "processor_class": "Qwen3TTSProcessor",
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    processor = {"padding_side": "left", "processor_class": "Qwen3TTSProcessor"}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=2) + "\n")
