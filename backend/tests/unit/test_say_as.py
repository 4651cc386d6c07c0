"""What `<say-as>` makes of a text for American, British and other voices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cantata.contract.catalogue import find_language, find_voice
from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import VoiceNotFound
from cantata.contract.data.request import Voice
from cantata.text import Passage, find_ignored, read_markup
from cantata.text.say_as import say_as

US, GB = "en-US", "en-GB"


@pytest.mark.parametrize(
    ("kind", "text", "american", "british"),
    [
        ("characters", "Zoë", "zee, oh, ë", "zed, oh, ë"),
        ("verbatim", "A-Z", "ay, dash, zee", "ay, dash, zed"),
        ("cardinal", "105", "one hundred five", "one hundred and five"),
        ("ordinal", "121st", "one hundred twenty-first", "one hundred and twenty-first"),
        ("digits", "007", "zero zero seven", "zero zero seven"),
        ("telephone", "020 7946 0018", None, "oh two oh, seven nine four six, double oh one eight"),
        ("telephone", "55 5666", "five five, five six six six", "double five, five triple six"),
        ("currency", "£105.50", None, "one hundred and five pounds, fifty pence"),
        ("currency", "$105", "one hundred five dollars", "one hundred and five dollars"),
        ("unit", "120 km", "one hundred twenty kilometers", "one hundred and twenty kilometers"),
    ],
)
def test_numbers_and_letters_follow_the_accent(
    kind: str, text: str, american: str | None, british: str
) -> None:
    assert say_as(text, kind, "", GB) == british
    if american is not None:
        assert say_as(text, kind, "", US) == american == say_as(text, kind, "", "en")


@pytest.mark.parametrize(
    ("text", "form", "american", "british"),
    [
        ("12/25", "", "December twenty-fifth", "the twenty-fifth of December"),
        ("25/12", "", "December twenty-fifth", "the twenty-fifth of December"),
        ("4/5", "", "April fifth", "the fourth of May"),
        ("4/5", "md", "April fifth", "the fifth of April"),
        ("4/5", "dmy", "May fourth", "the fourth of May"),
        (
            "5/4/26",
            "",
            "May fourth, twenty twenty-six",
            "the fifth of April, twenty twenty-six",
        ),
        ("31.12.1999", "", "December thirty-first, nineteen ninety-nine", "the thirty-first of "),
        ("2026-05-04", "", "May fourth, twenty twenty-six", "the fourth of May, twenty twenty-six"),
        ("20260504", "yyyymmdd", "May fourth, twenty twenty-six", "the fourth of May, twenty "),
        ("040526", "ddmmyy", "May fourth, twenty twenty-six", "the fourth of May, twenty "),
        ("12/2025", "", "December twenty twenty-five", "December twenty twenty-five"),
        ("2025-12", "", "December twenty twenty-five", "December twenty twenty-five"),
        ("2005", "", "two thousand five", "two thousand and five"),
        ("21st", "d", "twenty-first", "twenty-first"),
        ("4 May", "", "May fourth", "the fourth of May"),
        ("the 4th of May, 2026", "", "May fourth, twenty twenty-six", "the fourth of May, twenty "),
        ("Sept. 3", "", "September third", "the third of September"),
        ("1 Jan 98", "", "January first, nineteen ninety-eight", "the first of January, nineteen"),
        ("May 2026", "my", "May twenty twenty-six", "May twenty twenty-six"),
    ],
)
def test_dates_follow_the_accent(text: str, form: str, american: str, british: str) -> None:
    assert say_as(text, "date", form, US) == american
    assert (say_as(text, "date", form, GB) or "").startswith(british)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("13/13", ""),
        ("0/4", ""),
        ("32/12/2026", ""),
        ("25/12/2026", "mdy"),
        ("1/2/3/4", ""),
        ("12345", ""),
        ("40 May", ""),
        ("4 Mayday", ""),
        ("May", ""),
        ("4 May June", ""),
        ("4+5", ""),
        ("soon", ""),
        ("", "mdy"),
    ],
)
def test_what_is_no_date_is_read_as_it_is_written(text: str, form: str) -> None:
    element = f'<say-as interpret-as="date" format="{form}">{text}</say-as>'
    for language in (US, GB):
        assert say_as(text, "date", form, language) is None
        if text:
            (passage,) = read_markup(element, language=language)
            assert isinstance(passage, Passage)
            assert passage.text == text
            assert find_ignored(element, language=language) == ["ssml:say-as"]


VOICES = (Voice("ann", "Ann", language=US), Voice("bob", "Bob", language=GB), Voice("eve", "Eve"))
CAN = Capabilities(languages=("de", "en"), voice_blends=True)
CHOOSES = replace(CAN, options={"language": {"type": "string"}})


@pytest.mark.parametrize(
    ("can", "voice", "asked", "language"),
    [
        (CAN, "ann", "", US),
        (CAN, "bob", "", GB),
        (CAN, "eve", "", "de"),
        (CAN, "bob(2)+ann", "", GB),
        (CAN, "bob", "en", GB),
        (CHOOSES, "eve", "en", "en"),
        (CHOOSES, "eve", "Auto", "de"),
    ],
)
def test_a_request_is_read_in_its_own_language_or_its_voices(
    can: Capabilities, voice: str, asked: str, language: str
) -> None:
    assert find_language(VOICES, can, voice, {"language": asked}) == language


def test_a_language_needs_a_voice_that_there_is() -> None:
    with pytest.raises(VoiceNotFound):
        find_language(VOICES, CAN, "tom", {})
    assert find_voice(VOICES, "Bob + ANN", "", blends=True).language == GB


def test_a_passage_in_another_language_has_its_words() -> None:
    text = '<say-as interpret-as="cardinal">42</say-as> '
    inside = f'{text}<lang xml:lang="de-DE">{text}</lang>'
    first, second = read_markup(inside, CHOOSES, language="en")
    assert isinstance(first, Passage)
    assert isinstance(second, Passage)
    assert first.text.strip() == "forty-two"
    assert second.text.strip() == "zweiundvierzig"
