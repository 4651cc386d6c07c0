"""The tokenizer: a small vocabulary in Qwen2's byte-pair format, and the published prompt."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch import Tensor
from transformers import Qwen2Tokenizer
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

END_OF_TEXT = "<|endoftext|>"
SPECIAL = (
    END_OF_TEXT,
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
"""The published special tokens that a prompt may hold."""
VOCABULARY = 2560
SYSTEM = (
    "Describe the image by detailing the color, shape, size, texture, quantity, text, "
    "spatial relationships of the objects and background:"
)
BEFORE = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n"
AFTER = "<|im_end|>\n<|im_start|>assistant\n"
DROPPED = 34
"""Tokens of `BEFORE`, as published; their embeddings are not used."""
CLOSING = 5
"""Tokens of `AFTER`; each has seen the whole caption."""
COMMON = 1000
"""How often the prompt's own words count, so that each becomes one token."""


def train_vocabulary(captions: Iterable[str], folder: Path) -> None:
    """Fits the byte-pair merges to captions and writes the tokenizer's files to `folder`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    frame = [f"system\n{SYSTEM}\nuser\n", "assistant\n", "\n"]
    texts = [text for caption in captions for text in (caption, " " + caption)]
    tokenizer.train_from_iterator(texts + frame * COMMON, trainer)
    _write(tokenizer, folder)


def _write(tokenizer: Tokenizer, folder: Path) -> None:
    """Writes `vocab.json`, `merges.txt` and the configuration, special tokens last."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.model.save(str(folder))
    first = tokenizer.get_vocab_size()
    added = {str(first + place): _special(text) for place, text in enumerate(SPECIAL)}
    config = {
        "tokenizer_class": "Qwen2Tokenizer",
        "added_tokens_decoder": added,
        "additional_special_tokens": list(SPECIAL[1:]),
        "pad_token": END_OF_TEXT,
        "eos_token": "<|im_end|>",
        "unk_token": None,
        "bos_token": None,
        "model_max_length": 512,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def _special(text: str) -> dict[str, str | bool]:
    return {
        "content": text,
        "lstrip": False,
        "normalized": False,
        "rstrip": False,
        "single_word": False,
        "special": True,
    }


class CaptionPrompts:
    """Turns captions into the published prompt's tokens."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = Qwen2Tokenizer.from_pretrained(folder)
        self.padding = self.tokenizer.convert_tokens_to_ids(END_OF_TEXT)
        self._known: dict[str, list[int]] = {}

    def ids(self, caption: str) -> list[int]:
        """Gives the tokens of a caption within the prompt."""
        if caption not in self._known:
            self._known[caption] = self.tokenizer(BEFORE + caption + AFTER).input_ids
        return self._known[caption]

    def batch(self, captions: list[str]) -> tuple[Tensor, Tensor]:
        """Gives the tokens behind the dropped ones, `[n, T]` padded on the right, and the mask.

        The mask `[n, T]` is False for padding.
        """
        rows = [self.ids(caption)[DROPPED:] for caption in captions]
        longest = max(map(len, rows))
        tokens = torch.full((len(rows), longest), self.padding)
        for row, ids in enumerate(rows):
            tokens[row, : len(ids)] = torch.tensor(ids)
        lengths = torch.tensor([len(ids) for ids in rows])
        return tokens, torch.arange(longest) < lengths[:, None]
