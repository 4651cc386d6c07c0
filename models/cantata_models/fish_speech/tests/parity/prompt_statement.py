"""Prompts as texts with the special tokens spelled, parsed by the tokenizers' own libraries."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import tiktoken
from tokenizers import Tokenizer

QWEN_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def s2_prompt(checkpoint: Path, text: str, transcript: str | None) -> tuple[list[int], int | None]:
    """An S2 prompt's tokens, and in front of which a recording stands."""
    tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    tokenizer.encode_special_tokens = False

    def ids(*segments: str) -> list[int]:
        return [token for segment in segments for token in tokenizer.encode(segment).ids]

    end = "<|im_end|>\n"
    user = ("<|im_start|>user\n", text, end, "<|im_start|>assistant\n<|voice|>")
    if transcript is None:
        system = ("<|im_start|>system\n", "convert the provided text to speech")
        return ids(*system, end, *user), None
    tagged = transcript if "<|speaker:" in transcript else f"<|speaker:0|>{transcript}"
    head = ids(
        "<|im_start|>system\n",
        "convert the provided text to speech reference to the following:\n\nText:\n",
        tagged,
        "\n\nSpeech:\n",
    )
    return head + ids(end, *user), len(head)


def s1_prompt(checkpoint: Path, text: str, transcript: str | None) -> tuple[list[int], int | None]:
    """The same of S1."""
    ranks = {}
    for line in (checkpoint / "tokenizer.tiktoken").read_text().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    special = json.loads((checkpoint / "special_tokens.json").read_text())
    encoding = tiktoken.Encoding(
        "statement", pat_str=QWEN_PIECES, mergeable_ranks=ranks, special_tokens=special
    )

    def ids(segment: str) -> list[int]:
        return list(encoding.encode(segment, allowed_special="all"))

    spoken = ids("<|speaker:0|>") + ids(text)
    if transcript is None:
        return ids("<|interleave|>") + spoken, None
    head = ids("<|interleave|>") + ids("<|speaker:0|>") + ids(transcript)
    return head + ids("<|im_end|>") + spoken, len(head)
