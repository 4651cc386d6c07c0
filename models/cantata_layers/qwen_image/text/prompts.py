"""Prompts, and pictures' places in them, as the text encoder's tokens, inside the text that the
model was trained with.

Source: `prompt_template_encode` of the three pipelines in diffusers.

Letters: P tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_image.config import TOKENIZER, Family
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer

PICTURE = "<|vision_start|><|image_pad|><|vision_end|>"
TURN = "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}"
ANSWER = "<|im_end|>\n<|im_start|>assistant\n"
DESCRIBE = (
    "Describe the image by detailing the color, shape, size, texture, quantity, text, spatial "
    "relationships of the objects and background:"
)
CHANGE = (
    "Describe the key features of the input image (color, shape, size, texture, objects, "
    "background), then explain how the user's text instruction should alter or modify the image. "
    "Generate a new image that meets the user's requirements while maintaining consistency with "
    "the original input where appropriate."
)
MAX_PROMPT_TOKENS = 1024
"""Of text to picture, with the header of the answer; the rest is cut."""
MAX_EMBEDDINGS = 512
"""Of text to picture, unless a request asks for up to `MAX_PROMPT_TOKENS`."""


@dataclass(frozen=True, slots=True)
class Template:
    """The prompt template of a model family."""

    system: str
    dropped: int
    """Tokens in front of what the user says; the denoiser does not see them."""
    cuts: bool
    """Whether long prompts are cut; otherwise all of them counts."""
    picture: str
    """In front of the prompt for each picture, with its number from 1."""

    @property
    def head(self) -> str:
        """The text before the user's."""
        return TURN.format(system=self.system, user="")

    def pictures(self, count: int) -> str:
        """Places of the pictures, between head and prompt."""
        return "".join(self.picture.format(number) for number in range(1, count + 1))


TEMPLATES = {
    Family.IMAGE: Template(DESCRIBE, dropped=34, cuts=True, picture=""),
    Family.EDIT: Template(CHANGE, dropped=64, cuts=False, picture=PICTURE),
    Family.EDIT_PLUS: Template(CHANGE, dropped=64, cuts=False, picture="Picture {}: " + PICTURE),
}


SPECIAL = re.compile(r"(<\|[a-z_]+\|>)")
PICTURE_TOKEN = "<|image_pad|>"
PROMPT = "\0"
"""Stands for the prompt in a template, so that a special token which it spells is text."""


class PicturePrompts:
    """Lays out the prompts of one checkpoint.

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
            output += self._encode(piece, prompt, sizes)
        if template.cuts:
            # The rest would be embedded for nothing: an embedding does not depend on later tokens.
            output = output[: template.dropped + MAX_EMBEDDINGS]
        return np.array(output, np.int32)

    def _encode(self, piece: str, prompt: str, sizes: Iterator[int]) -> list[int]:
        if not SPECIAL.fullmatch(piece):
            text = piece.replace(PROMPT, prompt)
            return list(self._tokenizer.encode(text, add_special_tokens=False).ids)
        token = self._tokenizer.token_to_id(piece)
        if token is None:
            raise ConfigError(f"{self._where}: the vocabulary has no {piece}")
        return [token] * (next(sizes) if piece == PICTURE_TOKEN else 1)
