"""What stands before a picture or an answer: a conversation's texts and pictures, in order.

The model knows no roles. Of each turn, the pictures come first, as in the publisher's app.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.pictures import ImageRequest
from cantata_layers.qwen_image.grid import Grid
from cantata_models.bagel.config import MAX_READ
from cantata_models.bagel.inputs import ContextPart, ReferenceGrids, Seen
from cantata_models.bagel.prompts import THINK_BEFORE_DRAWING, Texts


def shown(request: ImageRequest) -> list[NDArray[np.uint8]]:
    """[H, W, 3] each: all pictures."""
    earlier = [picture for turn in request.earlier for picture in turn.pictures]
    return [*earlier, *request.references]


def build_context(
    request: ImageRequest, texts: Texts, references: Sequence[ReferenceGrids]
) -> tuple[ContextPart, ...]:
    """The parts of a request.

    Args:
        request: its prompt is the last part, and is read even if it is empty.
        texts: the tokenizer.
        references: stand for its pictures.
    """
    turns = [(len(turn.pictures), turn.text) for turn in request.earlier]
    left = iter(references)
    parts: list[ContextPart] = []
    for pictures, text in turns:
        parts += [next(left) for _ in range(pictures)]
        if text:
            parts.append(texts.tokens(text))
    return (*parts, *left, texts.tokens(request.prompt))


def with_thinking(parts: Sequence[ContextPart], texts: Texts) -> tuple[ContextPart, ...]:
    """The same behind the text that asks for a thought."""
    return (texts.tokens(THINK_BEFORE_DRAWING), *parts)


def positions(parts: Sequence[ContextPart]) -> int:
    """That they take up: both forms of a picture have one each."""
    return sum(2 if isinstance(part, ReferenceGrids) else len(part) for part in parts)


def text_tokens(parts: Sequence[ContextPart]) -> int:
    return sum(len(part) for part in parts if not isinstance(part, ReferenceGrids))


def picture_tokens(parts: Sequence[ContextPart]) -> int:
    """Of both forms of the pictures."""
    grids = (part for part in parts if isinstance(part, ReferenceGrids))
    return sum(Grid(*one.kept).tokens + Grid(*one.seen).tokens for one in grids)


def pieces(parts: Sequence[ContextPart | Seen]) -> int:
    """Steps that read them."""
    return sum(map(_pieces, parts))


def _pieces(part: ContextPart | Seen) -> int:
    match part:
        case ReferenceGrids():
            return 2
        case Seen():
            return 1
        case _:
            return -(-len(part) // MAX_READ)
