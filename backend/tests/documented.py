"""Code of the documents, for tests that run what a reader copies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

HOWTOS = Path(__file__).parents[2] / "docs" / "howto"
URL = "http://127.0.0.1:8000"
"""The server's address in the documents."""


def read_block(document: Path, label: str) -> str:
    """The one block of code with this label, which stands behind the block's language."""
    text = document.read_text(encoding="utf-8")
    found = re.findall(rf"^```\w+ {re.escape(label)}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(found) == 1, f"{document.name} has {len(found)} blocks {label}"
    return str(found[0])


def read_blocks(document: Path, language: str) -> list[str]:
    """All blocks of code in this language, in order."""
    text = document.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}(?: .*)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def fill_in(text: str, values: Mapping[str, str]) -> str:
    """What a reader does: put own values in the place of the example's, each of which is there."""
    for example, own in values.items():
        assert example in text, example
        text = text.replace(example, own)
    return text
