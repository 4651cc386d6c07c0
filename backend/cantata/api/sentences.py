"""Finding complete sentences in text that is still arriving."""

from __future__ import annotations

import re

_END = re.compile(
    r"""
    [.!?\u2026]+ ["')\]\u2019\u201d]* (?=\s)
        # a terminator, closing marks, and the space that proves it
    | [\u3002\uff01\uff1f]+ [\u300d\u300f\u2019\u201d\uff09]*
        # scripts that write no space behind their full-width terminators
    | \n\s*\n                     # a paragraph
    """,
    re.VERBOSE,
)
_LAST_WORD = re.compile(r"([A-Za-z.]+)\.$")
_ABBREVIATIONS = frozenset(
    ("mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "vs", "etc", "e.g", "i.e", "vol", "inc")
)


def split_sentences(text: str) -> tuple[list[str], str]:
    """Cut off the sentences that are certainly complete.

    A piece without a letter or digit is not a sentence and stays with what follows. Nothing is
    lost: the sentences and the rest together are `text`, but for spaces around sentences.

    Returns:
        The complete sentences, and the rest, which more text may still change.
    """
    sentences: list[str] = []
    start = 0
    for end in _END.finditer(text):
        piece = text[start : end.end()].strip()
        if _is_sentence(piece):
            sentences.append(piece)
            start = end.end()
    rest = text[start:]
    return sentences, rest.lstrip() if sentences else rest


def _is_sentence(piece: str) -> bool:
    if not any(character.isalnum() for character in piece):
        return False
    last = _LAST_WORD.search(piece)
    if last is None:
        return True
    word = last.group(1)
    initial = len(word) == 1 and word.isupper() and word != "I"
    return not initial and word.lower() not in _ABBREVIATIONS
