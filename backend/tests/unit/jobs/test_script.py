"""How documents are cut into sentences, and who speaks them."""

from __future__ import annotations

from cantata.documents.document import Chapter, Document
from cantata.jobs.script import HEADING_S, MAX_SENTENCE_CHARACTERS, PARAGRAPH_S, write_script


def document(*chapters: tuple[str, ...]) -> Document:
    return Document("", "", "", tuple(Chapter("", one) for one in chapters))


def test_sentences_are_in_order_with_pauses_between_paragraphs() -> None:
    script = write_script(document(("One", "Dr. A said no. Why?", "***", "End."), ("Two.",)))
    assert [one.number for one in script] == [0, 1, 2, 3, 4]
    assert [(one.chapter, one.text, one.pause_s, one.begins) for one in script] == [
        (0, "One", 0.0, True),
        (0, "Dr. A said no.", HEADING_S, False),
        (0, "Why?", 0.0, False),
        (0, "End.", PARAGRAPH_S, False),
        (1, "Two.", 0.0, True),
    ]


def test_lines_name_their_speakers() -> None:
    text = "ALICE: Hello. You?\n**Bob**: Fine.\nNote: not a name.\nalice:  Good"
    script = write_script(document((text, "Later.")), ["Alice", "BOB"])
    assert [(one.speaker, one.text) for one in script] == [
        ("Alice", "Hello."),
        ("Alice", "You?"),
        ("BOB", "Fine."),
        ("BOB", "Note: not a name."),
        ("Alice", "Good"),
        ("", "Later."),
    ]
    assert write_script(document((text,)))[0].speaker == ""


def test_a_very_long_sentence_is_cut_between_words() -> None:
    words = ["word"] * 1_000
    script = write_script(document((" ".join(words),)))
    assert max(len(one.text) for one in script) <= MAX_SENTENCE_CHARACTERS
    assert " ".join(one.text for one in script).split() == words
    assert "".join(one.text for one in write_script(document(("x" * 4_000,)))) == "x" * 4_000
