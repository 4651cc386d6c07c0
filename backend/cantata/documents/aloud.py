"""The text of a document as it is spoken: plain, so that what is shown of it is plain, too."""

from __future__ import annotations

from collections.abc import Iterable

from cantata.documents.markdown import read_blocks
from cantata.documents.plain import decode_text
from cantata.documents.web_page import PageBlock, read_page


def read_aloud(data: bytes, kind: str) -> str:
    """What is spoken of a file.

    Args:
        kind: `md` or `html`, whose markup is left out, or another one: all of the text is spoken.

    Raises:
        InvalidDocument: it is neither UTF-8 nor marked UTF-16.
    """
    text = decode_text(data)
    match kind:
        case "md":
            return _join(read_blocks(text))
        case "html":
            return _join(read_page(text).blocks)
        case _:
            return text


def _join(blocks: Iterable[PageBlock]) -> str:
    return "\n\n".join(" ".join(block.text.split()) for block in blocks)
