"""Tokenizers in both layouts' file formats, without the published vocabulary."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_layers.random_files import write_json
from cantata_layers.random_qwen_tokenizer import ORDINARY_TOKENS, write_qwen_tokenizer
from cantata_models.fish_speech.config import Layout
from cantata_models.fish_speech.random_checkpoint.shapes import Shape
from cantata_models.fish_speech.text.special_tokens import (
    IM_END,
    IM_START,
    INTERLEAVE,
    SEMANTIC,
    SPECIAL_FILE,
    TOKENIZER_FILE,
    VOICE,
)
from cantata_models.fish_speech.text.tokenizers import RANKS_FILE

NAMES = ("<|endoftext|>", IM_START, IM_END, VOICE, INTERLEAVE, "<|audio_pad|>")
PUBLISHED_SEMANTIC = 35
"""The published semantic tokens begin so far behind the first special one."""
MERGED = (b"in", b"he", b"the", b" the", b"er", b"on")
S1_ORDINARY = 256 + len(MERGED)


def special_ids(shape: Shape) -> Mapping[str, int]:
    """Return the special tokens' ids. S1's semantic tokens come first, so that others follow."""
    if shape.layout is Layout.S1:
        semantic = first = S1_ORDINARY
        first += shape.codes
    elif shape.first_special is None:
        first = ORDINARY_TOKENS
        semantic = first + len(NAMES)
    else:
        first = shape.first_special
        semantic = first + PUBLISHED_SEMANTIC
    ids = {name: first + rank for rank, name in enumerate(NAMES)}
    return ids | {SEMANTIC.format(code): semantic + code for code in range(shape.codes)}


def write_tokenizer(folder: Path, shape: Shape) -> int:
    """Write a checkpoint's tokenizer; returns how many tokens it has."""
    ids = special_ids(shape)
    if shape.layout is Layout.S2:
        with TemporaryDirectory() as parts:
            write_qwen_tokenizer(Path(parts), ids)
            load_qwen_tokenizer(Path(parts)).save(str(folder / TOKENIZER_FILE))
    else:
        tokens = [*(bytes([byte]) for byte in range(256)), *MERGED]
        lines = [f"{base64.b64encode(token).decode()} {rank}" for rank, token in enumerate(tokens)]
        (folder / RANKS_FILE).write_text("\n".join(lines) + "\n", "utf-8")
        write_json(folder / SPECIAL_FILE, dict(ids))
    return max(ids.values()) + 1
