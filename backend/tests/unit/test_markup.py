"""Markup in text: what is read of it, where it pauses, and that pieces are read like the whole."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import TextSpan
from cantata.text import (
    ArrivingMarkup,
    Passage,
    find_markup_spans,
    read_markup,
    strip_markup,
    with_pauses_inside,
)


def parts(text: str) -> list[str | float]:
    read = read_markup(text)
    return [part.text if isinstance(part, Passage) else part.duration_s for part in read]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello.", ["Hello."]),
        ("One[pause 1.5s]two", ["One", 1.5, "two"]),
        ("[pause 500ms] Go", [0.5, " Go"]),
        ("Go [PAUSE 2 S ]", ["Go ", 2.0]),
        ("[pause 1s] [pause .5s]", [1.0, 0.5]),
        ("a [pause 10s]\n", ["a ", 10.0]),
        ("He [paused] and [[P AO Z]].", ["He [paused] and [[P AO Z]]."]),
        ("A [note] pause 1s.", ["A [note] pause 1s."]),
        ("", []),
        ('A<break time="500ms"/>B', ["A", 0.5, "B"]),
        ("A <break time='1.5s' />B", ["A ", 1.5, "B"]),
        ('A <BREAK TIME="+2S">B', ["A ", 2.0, "B"]),
        (r"A <break time=\"1s\"/> B", ["A ", 1.0, " B"]),
        ("A <break time=\u201c1s\u201d/> B", ["A ", 1.0, " B"]),
        ("A<break/>B", ["A", 0.75, "B"]),
        ('A<break strength="x-strong"/>B', ["A", 1.25, "B"]),
        ('A<break strength="weak" time="3s"/>B', ["A", 3.0, "B"]),
        ('A <break strength="none"/>B <break time="0s"/>C', ["A  B  C"]),
    ],
)
def test_pauses(text: str, expected: list[str | float]) -> None:
    assert parts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One[pause 1.5s]two", ["One[pause 1.5s]two"]),
        ("One [pause 2s] [pause 500ms] two", ["One [pause 2.0s][pause 0.5s] two"]),
        ('A <break time="250ms"/>b', ["A [pause 0.25s]b"]),
        ("[pause 1s]One [pause 2s] two. [pause 3s]", [1.0, "One [pause 2.0s] two. ", 3.0]),
        ("...[pause 1s] One [pause 2s].", ["...", 1.0, " One ", 2.0, "."]),
        ("One [pause 1s] ... [pause 2s] two", ["One [pause 1.0s] ... [pause 2.0s] two"]),
        ("[pause 1s]...", [1.0, "..."]),
        ("One.", ["One."]),
    ],
)
def test_pauses_between_words_stay_in_the_text(text: str, expected: list[str | float]) -> None:
    joined = with_pauses_inside(read_markup(text))
    found = [part.text if isinstance(part, Passage) else part.duration_s for part in joined]
    assert found == expected


def test_words_keep_their_place_around_a_pause_in_the_text() -> None:
    text = "**One** [pause 1s] two"
    (passage,) = with_pauses_inside(read_markup(text))
    assert isinstance(passage, Passage)
    assert len(passage.text) == len(passage.starts) == len(passage.ends)
    for word in ("One", "two"):
        start = passage.text.index(word)
        span = passage.source(TextSpan(start, start + len(word)))
        assert text[span.start : span.end] == word


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Wait [pause abc] here", r"'\[pause abc\]' at character 5 is not a pause"),
        ("[pause]", r"'\[pause\]' at character 0 is not a pause; valid are \[pause 1.5s\]"),
        ("[pause 1.5]", "is not a pause"),
        ("[pause 1,5s]", "is not a pause"),
        ("[pause -1s]", "is not a pause"),
        ("so [pause 1s and on", "at character 3 is not a pause"),
        ("[pause 0s]", "above 0 and at most 10 s"),
        ("[pause 10.1s]", "out of range"),
        ("[pause 99999999999999999999ms]", "out of range"),
        ('Wait <break time="soon"/>', "at character 5 is not a pause"),
        ('<break time="11s"/>', "out of range"),
        ('<break strength="huge"/>', "strengths are none, x-weak, weak, medium, strong, x-strong"),
    ],
)
def test_errors_name_the_markup_and_its_position(text: str, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says) as refusal:
        read_markup(text)
    assert refusal.value.param == "input"


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        # Addresses in angle brackets are text.
        (
            "See <https://example.com/a_b?x=1&lt=2> now.",
            "See https://example.com/a_b?x=1&lt=2 now.",
        ),
        ("Mail <joe.b@x.org> or <www.x.org/a>.", "Mail joe.b@x.org or www.x.org/a."),
        ("**https://a.b/_x_**", "https://a.b/_x_"),
        # So are placeholders, types and comparisons.
        ("Dear <name>, in <your city>", "Dear name, in your city"),
        ("List<String> Map<K, V>", "List String Map K, V"),
        ("a<b and c>d; x < y; 2 <= 3 -> 4; I <3 you", None),
        ("Use `<div>`, `a<b`, `*x*` and `</p>`.", "Use  div , a<b, *x* and  p ."),
        # HTML and SSML.
        ("un<b>believ</b>able", "unbelievable"),
        ("<p>One</p><p>Two<br/>three</p>", "\nOne\n\nTwo\nthree\n"),
        ('<a href="http://x.y" target=_blank>link</a> <input type="text" disabled/>', "link "),
        ("a<!-- not <b>this</b> -->b<?xml version='1.0'?>c<!DOCTYPE html>", "abc"),
        ("<style>p { color: red }</style>a<script src='x'>f()</script>", "a"),
        ("<![CDATA[a *b*]]>", "a *b*"),
        (
            '<prosody rate="slow">Slow</prosody> <say-as interpret-as="date">1 May</say-as>',
            "Slow May first",
        ),
        ('<voice name="x"><mstts:express-as style="sad">Oh</mstts:express-as></voice>', "Oh"),
        ('<phoneme alphabet="ipa" ph="t\u0259">to</phoneme><mark name="m"/>', "to"),
        ('<sub alias="World Wide Web">WWW</sub>; H<sub>2</sub>O', "World Wide Web; H2O"),
        ("<think>Hm.</think>Yes.", "\nHm.\nYes."),
        # Entities.
        (
            "AT&amp;T &#39;x&#39; &#x41;&nbsp;b &copy; &bogus; &amp;lt;",
            "AT&T 'x' A b \u00a9 &bogus; &lt;",
        ),
        ("a &lt; b, &lt;b&gt;", "a < b, b>"),
        # Terminals.
        ("\x1b[31mred\x1b[0m \x1b[1;38;5;208mx\x1b[m \x9b4my\x1b(B\x07", "red x y"),
        ("\x1b]8;;https://a.b\x1b\\link\x1b]8;;\x1b\\ \x1b]0;title\x07z", "link z"),
        # Markdown: lines.
        ("> said\n> > twice\nplain > 3", "said\ntwice\nplain > 3"),
        ("```python\nprint(1)\n```\nEnd", "\nprint(1)\n\nEnd"),
        ("~~~ js {.x}\nf\n~~~", "\nf\n"),
        ("# Title #1\n###### Sub\n#tag", "Title #1\nSub\n#tag"),
        ("a\n---\nb\n* * *\nc\n=====", "a\n\nb\n\nc\n"),
        ("- a\n* b\n1. c\n- [x] d", None),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", " a , b \n\n 1 , 2 "),
        ("a || b; a|b; yes | no", "a || b; a|b; yes , no"),
        ("x[^1]: y\n[^1]: note\n[1]: https://x.y 'T'\nz", "x: y\n note\n\nz"),
        # Markdown: inside lines.
        ("**a** *b* ***c*** __d__ _e_ ~~f~~ `g` ``h``", "a b c d e f g h"),
        ("\u8fd9\u662f**\u91cd\u70b9**\u5185\u5bb9", "\u8fd9\u662f\u91cd\u70b9\u5185\u5bb9"),
        ("2*3 5 * 3 snake_case f**k \u2018\u2019", None),
        ("10**-3 or 2**(n+1), (a+b)**2, a[i]**2 + x ** 2", None),
        ("**-3** and **(a)** **b** and **10**-year", "-3 and (a) b and 10-year"),
        ('[a *b*](http://x.y/(z) "T") ![pic](p.png) [c][1] [![d](e)](http://f)', "a b pic c d"),
        ("arr[i](x) [1] [note] f[0][1]", None),
        (r"\*a\* \# \[b\] C:\Users", "*a* # b C:\\Users"),
        (
            "$x^2$ and $$y$$ and \\(z\\) for $5 and $6, $HOME",
            "x^2 and y and z for $5 and $6, $HOME",
        ),
    ],
)
def test_what_is_read_of_markup(text: str, spoken: str | None) -> None:
    """None: the text as it stands."""
    assert strip_markup(text) == (text if spoken is None else spoken)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("[Misaki](/mis\u02c8\u0251ki/) is", "[[/mis\u02c8\u0251ki/]] is"),
        ("[Kokoro](/k\u02c8Ok\u0259\u0279O/)", "[[/k\u02c8Ok\u0259\u0279O/]]"),
        ("[docs](/docs/) [home](/) [x](/stra\u00dfe/) [y](/a/b\u0259/)", "docs home x y"),
    ],
)
def test_phones_behind_a_word_replace_it_where_the_model_reads_phones(text: str, read: str) -> None:
    (part,) = read_markup(text, Capabilities(phones=True))
    assert isinstance(part, Passage)
    assert part.text == read
    if "[[" in read:
        place = read.index("[[")
        assert text[part.starts[place] : part.ends[place]] in ("Misaki", "Kokoro")
    (part,) = read_markup(text)
    assert isinstance(part, Passage)
    assert part.text == strip_markup(text), "other models read the word"


def test_a_continued_line_does_not_begin_with_a_line_mark() -> None:
    (part,) = read_markup("> 3.\n> x", line_start=False)
    assert isinstance(part, Passage)
    assert part.text == "> 3.\nx"


FRAGMENTS = (
    *(
        "a",
        "B ",
        "one two. ",
        "5",
        " ",
        "\n",
        "\n\n",
        "\u8fd9",
        "\u3002",
        "'",
        '"',
        "=",
        "\t",
        "\u201c",
    ),
    *("<", "</b>", "<b>", "<break time='1s'/>", "<https://a.b/c_d>", "<name>", "<!--", " -->"),
    *("<sub alias='x'>y</sub>", '<sub alias="x">', "<script>", "</script>", "&amp;", "&", "lt;"),
    *(
        "\x1b[31m",
        "\x1b",
        "[0m",
        "*",
        "**",
        "10**-3 ",
        "(a)**",
        "_",
        "`",
        "```",
        "```python\n",
        "~~~",
        "\\",
        "\\*",
    ),
    *("> ", ">", "#", "# ", "- ", "---", "\n---\n", "|", "| a | b |\n", "|-|-|", "$", "$x$", "$5"),
    *("[x](y)", "[x]", "(y z)", "![i](j)", "[^1]", ":", "[^1]: ", "[1]: https://x.y/z", "]", "["),
    *("(", ")", "{", "!", "[pause 1s]", "[pause", "[[K AE T]]", "[[", "]]", "http", "://"),
)
TEXTS = st.one_of(
    st.text(max_size=40), st.lists(st.sampled_from(FRAGMENTS), max_size=9).map("".join)
)


@given(TEXTS, st.lists(st.integers(0, 60), max_size=8))
def test_a_text_in_pieces_is_read_like_the_whole(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    arriving = ArrivingMarkup()
    read = [arriving.push(text[a:b]) for a, b in pairwise(places)]
    assert "".join(read) + arriving.close() == strip_markup(text)


@given(TEXTS)
def test_every_character_that_is_read_has_its_place(text: str) -> None:
    try:
        passages = [part for part in read_markup(text) if isinstance(part, Passage)]
    except InvalidRequest:
        return  # a pause that is none
    places = [place for part in passages for place in zip(part.starts, part.ends, strict=True)]
    assert [len(part.text) for part in passages] == [len(part.starts) for part in passages]
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert places == sorted(places)


def test_plain_words_do_not_wait_for_what_follows() -> None:
    arriving = ArrivingMarkup()
    assert arriving.push("It costs five") == "It costs five"
    assert arriving.push(" pounds. **No") == " pounds. No"
    assert arriving.push("w** <br") == "w "
    assert arriving.push("eak/> Go") == "  Go"


@pytest.mark.parametrize(
    "text",
    [
        "Hello [pause 1.",
        "Hello <break time='1. ",
        "Hello [a. b](http://c.",
        "Hello <!-- one. two",
        "Hello \x1b]8;;http://a.",
    ],
)
def test_markup_that_is_still_arriving_has_its_place_already(text: str) -> None:
    assert find_markup_spans(text)[-1] == TextSpan(6, len(text))
    assert find_markup_spans("Hello there") == []
