"""The texts that are spoken: sets by length, and texts of any length."""

from __future__ import annotations

import random
from typing import Literal

TextSet = Literal["short", "medium", "long", "mixed"]

CHARACTERS_PER_MINUTE = 900
_SHORT = (
    "Good morning.",
    "Yes, of course.",
    "The door is open.",
    "One moment, please.",
    "It is a quarter past nine.",
    "Turn left at the bridge.",
    "Thank you for calling.",
    "I will be there at noon.",
)
_MEDIUM = (
    "The morning train was late again, so we walked along the river instead.",
    "Could you tell me where the nearest library is?",
    "She opened the letter, read it twice, and put it back on the table.",
    "Please leave the keys with the neighbour before you go.",
    "A cold wind came down from the hills and rattled the windows all night.",
    "Nothing in the garden had been touched since the summer.",
    "We bought bread, cheese, two apples and a bottle of water.",
    "I am not sure that this is the right answer, but it is a good question.",
)
_SUBJECTS = ("The old ferry", "My neighbour", "A grey cat", "The first train", "Nobody here")
_VERBS = ("waited for", "remembered", "carried", "never mentioned", "turned away from")
_OBJECTS = ("the harbour lights", "a box of letters", "the winter market", "two green bottles")
_ENDS = ("before noon", "in the heavy rain", "for 3 hours", "with a small sigh", "and went home")
_LONG_MINUTES = 0.4
_LONG = 4
_MIXED_PARTS = (4, 4, 1)
"""Short, medium and long texts of a mixed set of nine."""


def varied_text(minutes: float, seed: int) -> str:
    """Sentences of about this duration."""
    dice = random.Random(seed)
    sentences: list[str] = []
    length = 0
    while length < minutes * CHARACTERS_PER_MINUTE:
        parts = (dice.choice(words) for words in (_SUBJECTS, _VERBS, _OBJECTS, _ENDS))
        sentences.append(" ".join(parts) + dice.choice((".", ".", "!", "?")))
        length += len(sentences[-1]) + 1
    return " ".join(sentences)


def text_set(name: TextSet, seed: int) -> tuple[str, ...]:
    """The texts of a set, in an order of the seed's."""
    long = tuple(varied_text(_LONG_MINUTES, seed + number) for number in range(_LONG))
    texts = {"short": _SHORT, "medium": _MEDIUM, "long": long}.get(name)
    if texts is None:
        short, medium, few = _MIXED_PARTS
        texts = (*_SHORT[:short], *_MEDIUM[:medium], *long[:few])
    return tuple(random.Random(seed).sample(texts, len(texts)))
