"""What stands before a picture or an answer: texts and pictures, as the language model reads them.

Texts stand between two marks each. The model knows no roles. Of each turn, the pictures come
first, as in the publisher's app. Source of the texts that ask for a thought: the publisher's
inferencer.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, takewhile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers.decoders import ByteLevel

from cantata.contract.data.errors import ConfigError
from cantata.contract.data.pictures import ImageRequest
from cantata_layers.qwen_image.grid import Grid
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.bagel.config import MAX_READ
from cantata_models.bagel.inputs import ContextPart, ReferenceGrids, Seen

BEGIN, END = "<|im_start|>", "<|im_end|>"
"""Of a text."""
PICTURE_BEGIN, PICTURE_END = "<|vision_start|>", "<|vision_end|>"
"""Of a picture."""
# The first lines of the published texts end with a space.
THINK_BEFORE_DRAWING = (
    "You should first think about the planning process in the mind and then generate the image. \n"
    "The planning process is enclosed within <think> </think> tags, i.e. <think> planning process "
    "here </think> image here"
)
THINK_BEFORE_ANSWERING = (
    "You should first think about the reasoning process in the mind and then provide the user with "
    "the answer. \nThe reasoning process is enclosed within <think> </think> tags, i.e. <think> "
    "reasoning process here </think> answer here"
)


class BagelTokenizer:
    """The tokenizer of one checkpoint.

    Raises:
        ConfigError: (on construction) it is missing, damaged or of another vocabulary.
    """

    def __init__(self, checkpoint: Path) -> None:
        self.tokenizer = load_qwen_tokenizer(checkpoint)
        self.tokenizer.decoder = ByteLevel()
        self._special = frozenset(self.tokenizer.get_added_tokens_decoder())
        self._where = checkpoint
        self.begin, self.end = self._mark(BEGIN), self._mark(END)
        self.around_picture = self._mark(PICTURE_BEGIN), self._mark(PICTURE_END)

    def tokens(self, text: str) -> tuple[int, ...]:
        """The tokens of a text, between its marks. Marks that are spelled out in it are text."""
        return (self.begin, *self._encode(text), self.end)

    def repeated_text(self, thought: Sequence[int]) -> tuple[int, ...]:
        """A thought's tokens [T] as those of a text: they are spelled, and read as a text is. Marks
        remain what they are; a mark of begin ends the thought, as in the reference."""
        output: list[int] = []
        kept = takewhile(self.begin.__ne__, thought)
        for special, tokens in groupby(kept, self._special.__contains__):
            run = list(tokens)
            output += run if special else self._encode(self.tokenizer.decode(run))
        return (self.begin, *output, self.end)

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def _mark(self, spelled: str) -> int:
        token: int | None = self.tokenizer.token_to_id(spelled)
        if token is None:
            raise ConfigError(f"{self._where}: the vocabulary has no {spelled}")
        return token


def shown(request: ImageRequest) -> list[NDArray[np.uint8]]:
    """[H, W, 3] each: all pictures."""
    earlier = [picture for turn in request.earlier for picture in turn.pictures]
    return [*earlier, *request.references]


def build_context(
    request: ImageRequest, texts: BagelTokenizer, references: Sequence[ReferenceGrids]
) -> tuple[ContextPart, ...]:
    """The parts of a request. `request`: its prompt is the last part, and is read even if it is
    empty."""
    turns = [(len(turn.pictures), turn.text) for turn in request.earlier]
    left = iter(references)
    parts: list[ContextPart] = []
    for pictures, text in turns:
        parts += [next(left) for _ in range(pictures)]
        if text:
            parts.append(texts.tokens(text))
    return (*parts, *left, texts.tokens(request.prompt))


def with_thinking(parts: Sequence[ContextPart], texts: BagelTokenizer) -> tuple[ContextPart, ...]:
    """The same behind the text that asks for a thought."""
    return (texts.tokens(THINK_BEFORE_DRAWING), *parts)


def positions(parts: Sequence[ContextPart]) -> int:
    """That they take up: both forms of a picture have one each."""
    return sum(2 if isinstance(part, ReferenceGrids) else len(part) for part in parts)


def text_tokens(parts: Sequence[ContextPart]) -> int:
    return sum(len(part) for part in parts if not isinstance(part, ReferenceGrids))


def picture_tokens(parts: Sequence[ContextPart]) -> int:
    """The number of tokens of all pictures, in both of their forms."""
    grids = (part for part in parts if isinstance(part, ReferenceGrids))
    return sum(Grid(*one.kept).tokens + Grid(*one.seen).tokens for one in grids)


def pieces(parts: Sequence[ContextPart | Seen]) -> int:
    """Steps that read them."""
    return sum(map(_count_pieces, parts))


def _count_pieces(part: ContextPart | Seen) -> int:
    match part:
        case ReferenceGrids():
            return 2
        case Seen():
            return 1
        case _:
            return -(-len(part) // MAX_READ)
