"""What is spoken of a file of text: its words, without its marks."""

from __future__ import annotations

import pytest

from cantata.contract.data.errors import InvalidDocument
from cantata.documents.aloud import read_aloud


def read(text: str, kind: str = "md") -> list[str]:
    return read_aloud(text.encode(), kind).split("\n\n")


def test_markdown_is_read_without_its_marks() -> None:
    said = read(
        "---\ntitle: x\n---\n# A *book* #\n> A [link](http://x.y/z) &amp; more,\n> on two lines.\n"
        "### T\n- one\n- [x] `two`\n  goes on\n\n1. first\n![A picture](a.png)\n\n***\n<!-- x -->"
    )
    assert said == [
        "A book",
        "A link & more, on two lines.",
        "T",
        "one",
        "two goes on",
        "1. first A picture",
    ]
    assert read("Title\n=====\nText.\n\n[1]: http://x.y/z") == ["Title", "Text."]


def test_items_have_the_numbers_that_readers_see() -> None:
    assert read(
        "1. Mix.\n1. Add:\n   - warm\n   - wet\n\n   ~~~\n   no\n   ~~~\n1. Bake.\n\n> 7) rest"
    ) == [
        "1. Mix.",
        "2. Add:",
        "warm",
        "wet",
        "3. Bake.",
        "7. rest",
    ]


def test_a_year_at_the_start_of_a_line_is_no_item() -> None:
    assert read("In the winter of\n1986. What a year!") == ["In the winter of 1986. What a year!"]


def test_nothing_that_is_said_is_lost() -> None:
    play = "[Ann]: Yes.\n[Bob]:\n  No.\n\n    indented\n\n" + "> " * 60 + "deep\n\n<div>\nraw</div>"
    assert read(play) == ["[Ann]: Yes. [Bob]: No.", "indented", "deep", "raw"]
    assert read("a[^1] b[^n]\n\n[^1]: one\n[^n]: two\n[r]: http://x.y") == ["a b", "one", "two"]


def test_rows_of_tables_are_lists() -> None:
    assert read("Before\n| a | b |\n|:--|--:|\n| 1 | 2 |\nafter") == [
        "Before",
        "a, b",
        "1, 2",
        "after",
    ]


@pytest.mark.parametrize("fence", ["```", "~~~~", "   ```"])
def test_fenced_code_is_left_out(fence: str) -> None:
    code = f"{fence}python\n# no\n\nprint(1)\n{fence}"
    assert read(f"Before:\n{code}\nAfter.\n- item\n{code}") == ["Before:", "After.", "item"]


def test_code_on_one_line_is_no_fence() -> None:
    assert read("```one```\n\ntwo") == ["one", "two"]


def test_marks_of_how_it_sounds_stay() -> None:
    said = "One. [pause 1s] [Misaki](/mis\u02c8\u0251ki/) [[x]] <break time='1s'/> two"
    assert read(f"- {said} *three*") == [f"{said} three"]


def test_a_page_is_read_by_its_paragraphs() -> None:
    page = "<head><title>T</title></head><nav>Menu</nav><h1>One</h1><p>a &amp; <b>b</b>"
    assert read(page, "html") == ["One", "a & b"]


def test_a_text_is_read_as_it_is() -> None:
    assert read_aloud(b"# a\r\n*b* `c`", "txt") == "# a\n*b* `c`"


def test_what_is_no_text_is_refused() -> None:
    for data, reason in (
        (b"caf\xe9", r"not UTF-8 \(byte 3\); save it as UTF-8"),
        (b"\xff\xfea", r"not UTF-16, as its mark says \(byte 2\); save it as UTF-8"),
    ):
        with pytest.raises(InvalidDocument, match=reason):
            read_aloud(data, "txt")
