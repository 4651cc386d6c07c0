"""Prompts as texts with the special tokens spelled, parsed by the tokenizers' own libraries."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path

import tiktoken
from tokenizers import Tokenizer

QWEN_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def s2_prompt(
    checkpoint: Path, text: str, transcripts: Sequence[str] = (), spoken: Sequence[str] = ()
) -> tuple[list[int], list[int]]:
    """An S2 prompt's tokens, and in front of which the frames of each recording stand and of each
    text that was spoken before."""
    tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    tokenizer.encode_special_tokens = False

    def ids(*segments: str) -> list[int]:
        return [token for segment in segments for token in tokenizer.encode(segment).ids]

    def turn(text: str) -> list[int]:
        return ids("<|im_start|>user\n", text, end, "<|im_start|>assistant\n<|voice|>")

    end = "<|im_end|>\n"
    tokens, places = ids("<|im_start|>system\n"), []
    if not transcripts:
        tokens += ids("convert the provided text to speech")
    else:
        lines = [
            line if "<|speaker:" in line else f"<|speaker:{number}|>{line}"
            for number, line in enumerate(transcripts)
        ]
        tokens += ids(
            "convert the provided text to speech reference to the following:\n\nText:\n",
            "\n".join(lines),
            "\n\nSpeech:\n",
        )
        places = [len(tokens)] * len(transcripts)
    tokens += ids(end)
    for earlier in spoken:
        tokens += turn(earlier)
        places.append(len(tokens))
        tokens += ids(end)
    return tokens + turn(text), places


def s1_prompt(
    checkpoint: Path, text: str, transcripts: Sequence[str] = (), spoken: Sequence[str] = ()
) -> tuple[list[int], list[int]]:
    """The same of S1, which speaks every text in one go."""
    assert not spoken
    ranks = {}
    for line in (checkpoint / "tokenizer.tiktoken").read_text().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    special = json.loads((checkpoint / "special_tokens.json").read_text())
    encoding = tiktoken.Encoding(
        "statement", pat_str=QWEN_PIECES, mergeable_ranks=ranks, special_tokens=special
    )

    def ids(*segments: str) -> list[int]:
        parts = (encoding.encode(segment, allowed_special="all") for segment in segments)
        return [token for part in parts for token in part]

    tokens, places = ids("<|interleave|>"), []
    for transcript in transcripts:
        tokens += ids("<|speaker:0|>", transcript)
        places.append(len(tokens))
        tokens += ids("<|im_end|>")
    return tokens + ids("<|speaker:0|>", text), places
