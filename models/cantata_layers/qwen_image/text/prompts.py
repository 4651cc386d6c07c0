"""Prompts, and pictures' places in them, as the text encoder's tokens.

Letters: P tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_image.config.pipeline import TOKENIZER, Family
from cantata_layers.qwen_image.text.templates import ANSWER, MAX_EMBEDDINGS, TEMPLATES
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer

SPECIAL = re.compile(r"(<\|[a-z_]+\|>)")
PICTURE_TOKEN = "<|image_pad|>"
PROMPT = "\0"
"""Stands for the prompt in a template, so that a special token which it spells is text."""


class Prompts:
    """Lays out the prompts of one checkpoint.

    Args:
        checkpoint: its folder.
        family: of it.

    Raises:
        ConfigError: the tokenizer is missing, damaged or of another vocabulary.
    """

    def __init__(self, checkpoint: Path, family: Family) -> None:
        self._template = TEMPLATES[family]
        self._tokenizer: Tokenizer = load_qwen_tokenizer(checkpoint / TOKENIZER)
        self._where = checkpoint / TOKENIZER

    @property
    def dropped(self) -> int:
        """Tokens in front of what the user says; the denoiser does not see their embeddings."""
        return self._template.dropped

    def tokens(self, prompt: str, pictures: Sequence[int] = ()) -> NDArray[np.int32]:
        """[P] tokens of a whole conversation.

        Args:
            prompt: may be empty.
            pictures: how many tokens each has.
        """
        template = self._template
        text = template.head + template.pictures(len(pictures)) + PROMPT + ANSWER
        sizes = iter(pictures)
        output: list[int] = []
        for piece in SPECIAL.split(text):
            output += self._encoded(piece, prompt, sizes)
        if template.cuts:
            # The rest would be embedded for nothing: an embedding does not depend on later tokens.
            output = output[: template.dropped + MAX_EMBEDDINGS]
        return np.array(output, np.int32)

    def _encoded(self, piece: str, prompt: str, sizes: Iterator[int]) -> list[int]:
        if not SPECIAL.fullmatch(piece):
            text = piece.replace(PROMPT, prompt)
            return list(self._tokenizer.encode(text, add_special_tokens=False).ids)
        token = self._tokenizer.token_to_id(piece)
        if token is None:
            raise ConfigError(f"{self._where}: the vocabulary has no {piece}")
        return [token] * (next(sizes) if piece == PICTURE_TOKEN else 1)
