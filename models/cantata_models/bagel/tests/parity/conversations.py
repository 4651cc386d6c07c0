"""The conversations that both the reference and this implementation answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chat import ChatRequest, ImagePart, Message, Role, TextPart
from cantata_models.bagel.tests.parity.scenarios import picture

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One request: texts, and widths, heights and seeds of pictures, in their order."""

    name: str
    parts: tuple[str | tuple[int, int, int], ...]
    max_tokens: int = 14
    thinks: bool = False

    def terms(self) -> list[str | Pixels]:
        """With the pictures themselves."""
        return [part if isinstance(part, str) else picture(*part) for part in self.parts]

    def request(self) -> ChatRequest:
        """One message."""
        parts = tuple(
            TextPart(term) if isinstance(term, str) else ImagePart(term) for term in self.terms()
        )
        return ChatRequest(
            (Message(Role.USER, parts),),
            max_tokens=self.max_tokens,
            temperature=0.0,
            thinks=self.thinks,
        )


CONVERSATIONS = (
    Conversation("describe", ((150, 100, 5), "What do you see there?")),
    Conversation("compare", ("First.", (64, 64, 2), (40, 190, 3), "And now the second one: why?")),
    Conversation("words", ("Qué hora es, 现在?",)),
    Conversation("thoughtful", ((60, 80, 6), "How many are there?"), thinks=True),
)
