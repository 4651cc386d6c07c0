"""SSML in a text: phones, words for what is said as something, prosody, marks, bad values."""

# ruff: noqa: RUF001 (phones that look like letters)

from __future__ import annotations

import pytest

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import Inflection
from cantata.text import (
    ArrivingMarkup,
    Passage,
    find_ignored,
    find_marks,
    read_markup,
    strip_markup,
)
from cantata.text.phone_alphabets import to_ipa


def read(text: str, *, phones: bool = True, language: str = "en") -> list[Passage]:
    parts = read_markup(text, Capabilities(languages=(language,), phones=phones))
    return [part for part in parts if isinstance(part, Passage)]


@pytest.mark.parametrize(
    ("phones", "alphabet", "ipa"),
    [
        ('p@"kA:n', "x-sampa", "pəˈkɑːn"),
        ('"r\\EI_h', "x-sampa", "ˈɹɛɪʰ"),
        ("P AH0 K AA1 N", "cmu-arpabet", "pəkˈɑn"),
        ("b er0 d", "cmu-arpabet", "bɚd"),
        ("/təˈmɑːtoʊ/", "ipa", "təˈmɑːtoʊ"),
    ],
)
def test_alphabets(phones: str, alphabet: str, ipa: str) -> None:
    assert to_ipa(phones, alphabet) == ipa


@pytest.mark.parametrize(
    ("element", "said"),
    [
        ('<phoneme alphabet="ipa" ph="pəˈkɑːn">pecan</phoneme>', "[[/pəˈkɑːn/]]"),
        ("<phoneme ph='kæt'/>", "[[/kæt/]]"),
        (r"<phoneme alphabet=\"x-sampa\" ph=\"k{t\">cat</phoneme>", "[[/kæt/]]"),
        ('<phoneme alphabet="x-sampa" ph="&quot;k{t">cat</phoneme>', "[[/ˈkæt/]]"),
        ('<say-as interpret-as="characters">Cia1</say-as>', "see, eye, ay, one"),
        ('<say-as interpret-as="digits">007</say-as>', "zero zero seven"),
        ('<say-as interpret-as="cardinal">42</say-as>', "forty-two"),
        ('<say-as interpret-as="ordinal">21st</say-as>', "twenty-first"),
        (
            '<say-as interpret-as="date" format="dmy">5/4/2026</say-as>',
            "April fifth, twenty twenty-six",
        ),
        (
            '<say-as interpret-as="date" format="ymd">20260504</say-as>',
            "May fourth, twenty twenty-six",
        ),
        ('<say-as interpret-as="time" format="hms12">2:30pm</say-as>', "two thirty P M"),
        ('<say-as interpret-as="telephone">+44 20</say-as>', "plus four four, two zero"),
        ('<say-as interpret-as="currency">$42.50</say-as>', "forty-two dollars, fifty cents"),
        ('<say-as interpret-as="unit">10kg</say-as>', "ten kilograms"),
        ('<sub alias="World">W</sub>', "World"),
    ],
)
def test_an_element_is_read_as_it_says(element: str, said: str) -> None:
    text = f"So {element} it is."
    (passage,) = read(text)
    assert passage.text == f"So {said} it is."
    place = passage.text.index(said)
    source = text[passage.starts[place] : passage.ends[place]]
    assert source in element
    assert text[passage.starts[place + len(said) + 1]] == "i"
    assert find_ignored(text, Capabilities(phones=True)) == []


def test_numbers_are_words_of_the_models_language() -> None:
    (passage,) = read('<say-as interpret-as="cardinal">42</say-as>', language="de")
    assert passage.text == "zweiundvierzig"


@pytest.mark.parametrize(
    ("text", "phones", "read_as", "ignored"),
    [
        ('<phoneme ph="kæt">cat</phoneme>', False, "cat", ["ssml:phoneme"]),
        ('<say-as interpret-as="cardinal">many</say-as>', True, "many", ["ssml:say-as"]),
        (
            '<say-as interpret-as="poem">roses &amp; me</say-as>',
            True,
            "roses & me",
            ["ssml:say-as"],
        ),
        ('<emphasis level="strong">now</emphasis>', True, "now", ["ssml:emphasis"]),
        ('<prosody pitch="high">up</prosody>', True, "up", ["ssml:pitch"]),
        ('<prosody pitch="+0Hz" range="low">up</prosody>', True, "up", ["ssml:range"]),
        ('<lang xml:lang="fr-FR">oui</lang>', True, "oui", ["ssml:lang"]),
        ('<lang xml:lang="en-GB">lift</lang>', True, "lift", []),
        ('<emphasis level="none">now</emphasis>', True, "now", []),
        ("<p>plain</p>", True, "\nplain\n", []),
    ],
)
def test_what_has_no_effect_is_named(
    text: str, phones: bool, read_as: str, ignored: list[str]
) -> None:
    assert [passage.text for passage in read(text, phones=phones)] == [read_as]
    assert find_ignored(text, Capabilities(phones=phones)) == ignored


def test_prosody_cuts_a_text_and_nests() -> None:
    text = 'a <prosody rate="slow">b <prosody rate="50%" volume="-6dB">c</prosody> d</prosody> e'
    passages = read(text)
    assert [passage.text.strip() for passage in passages] == list("abcde")
    assert [round(passage.prosody.rate, 3) for passage in passages] == [1, 0.8, 0.4, 0.8, 1]
    assert [round(passage.prosody.gain, 2) for passage in passages] == [1, 1, 0.5, 1, 1]


@pytest.mark.parametrize(
    ("rate", "factor"), [("+20%", 1.2), ("-50%", 0.5), ("80%", 0.8), ("2", 2.0), ("x-fast", 1.6)]
)
def test_rates(rate: str, factor: float) -> None:
    (passage,) = read(f"<prosody rate='{rate}'>a</prosody>")
    assert passage.prosody.rate == pytest.approx(factor)


INFLECTS = Capabilities(inflections=True)


def list_inflections(text: str) -> list[tuple[str, Inflection]]:
    """The words that stand out in a text's only passage, as it is spoken."""
    (passage,) = (one for one in read_markup(text, INFLECTS) if isinstance(one, Passage))
    found = passage.inflected
    return [(passage.text[one.span.start : one.span.end], one.inflection) for one in found]


def test_emphasis_leaves_the_sentence_whole_and_nests() -> None:
    text = "so &amp; so <emphasis>a <emphasis level='strong'>b</emphasis> c</emphasis> **d**"
    (first, _), (inner, strong), (last, moderate) = list_inflections(text)
    assert (first, inner, last) == ("a ", "b", " c")
    assert moderate.pitch > 1 > moderate.rate
    assert strong.pitch == pytest.approx(moderate.pitch * 1.25)
    assert strong.loudness_db > moderate.loudness_db > 0
    assert find_ignored(text, INFLECTS) == []


@pytest.mark.parametrize(
    ("pitch", "factor"), [("+20%", 1.2), ("-12st", 0.5), ("120%", 1.2), ("x-low", 0.75)]
)
def test_pitches(pitch: str, factor: float) -> None:
    ((words, inflection),) = list_inflections(f"<prosody pitch='{pitch}'>a b</prosody>")
    assert words == "a b"
    assert inflection.pitch == pytest.approx(factor)
    assert (inflection.loudness_db, inflection.rate) == (0, 1)


def test_an_unclosed_emphasis_ends_with_the_text_and_a_stray_end_changes_nothing() -> None:
    assert [words for words, _ in list_inflections("a <emphasis>b c")] == ["b c"]
    assert list_inflections("a </emphasis>b") == []
    crossed = "<emphasis>a <prosody pitch='high'>b</emphasis> c</prosody> d"
    assert [words for words, _ in list_inflections(crossed)] == ["a ", "b"]


def test_emphasis_in_text_that_arrives_has_no_effect() -> None:
    arriving = ArrivingMarkup()
    assert arriving.push("a <emphasis>b</emphasis> c") + arriving.close() == "a b c"


@pytest.mark.parametrize(
    ("tag", "chosen"), [("fr-CA", "fr"), ("pt-PT", "pt-PT"), ("pt", "pt-BR"), ("en", None)]
)
def test_a_language_that_the_model_can_be_asked_for_is_a_passage(
    tag: str, chosen: str | None
) -> None:
    speaks = Capabilities(languages=("pt-BR", "pt-PT", "fr"), options={"language": {}})
    text = f"um <lang xml:lang='{tag}'>dois</lang> tres"
    passages = [one for one in read_markup(text, speaks) if isinstance(one, Passage)]
    languages = [one.language for one in passages]
    assert languages == ([None] if chosen is None else [None, chosen, None])
    assert find_ignored(text, speaks) == (["ssml:lang"] if chosen is None else [])


@pytest.mark.parametrize("volume", ["silent", "-100dB", "0"])
def test_silence(volume: str) -> None:
    (passage,) = read(f"<prosody volume='{volume}'>a</prosody>")
    assert passage.prosody.gain == 0


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("x <phoneme ph='€'>x</phoneme>", "'€' is no phone"),
        ("x <phoneme>x</phoneme>", None),
        ("x <phoneme alphabet='kirshenbaum' ph='a'>x</phoneme>", "cmu-arpabet"),
        ("x <phoneme alphabet='cmu-arpabet' ph='QQ'>x</phoneme>", "'QQ'"),
        ("x <prosody rate='banana'>x</prosody>", "x-slow"),
        ("x <prosody rate='9000%'>x</prosody>", "0.25 to 4"),
        ("x <prosody volume='+99dB'>x</prosody>", "+12dB"),
        ("x <prosody pitch='shrill'>x</prosody>", "x-high"),
        ("x <prosody pitch='+30st'>x</prosody>", "0.5 to 2"),
        ("x <emphasis level='very'>x</emphasis>", "moderate"),
        ("x <lang>x</lang>", "xml:lang"),
        ("x <!DOCTYPE speak [<!ENTITY lol 'lol'>]><speak>&lol;</speak>", "declarations"),
    ],
)
def test_bad_values_say_where_and_what_is_valid(text: str, named: str | None) -> None:
    if named is None:
        assert [passage.text for passage in read(text)] == ["x x"]
        return
    with pytest.raises(InvalidRequest) as refusal:
        read(text)
    assert refusal.value.param == "input"
    assert named in refusal.value.message
    assert "at character " in refusal.value.message


def test_an_entity_bomb_is_refused_before_anything_is_expanded() -> None:
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    with pytest.raises(InvalidRequest):
        read(f'<!DOCTYPE speak [<!ENTITY l0 "lol">{levels}]><speak>&l9;</speak>')


def test_nested_substitutes_are_read_once() -> None:
    (passage,) = read(
        '<sub alias="<sub alias=a>b</sub>">c</sub> <sub alias="x"><sub alias="y">z</sub></sub>'
    )
    assert len(passage.text) < 60


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ('a <mark name="m"/> b', [("m", 2, False)]),
        ('a <mark name="m"/><break/> b', [("m", 2, True)]),
        ('a <break/> <mark name="m"/>b', [("m", 11, False)]),
        ('a <mark name="m"/> b [pause 1s]', [("m", 2, False)]),
        ('<bookmark mark="m"/>', [("m", 0, False)]),
        ("a <mark>highlighted</mark>", []),
    ],
)
def test_marks(text: str, marks: list[tuple[str, int, bool]]) -> None:
    assert [(one.name, one.place, one.before_pause) for one in find_marks(text)] == marks


def test_a_text_in_pieces_is_read_like_the_whole() -> None:
    text = (
        'A <say-as interpret-as="digits">12</say-as> <phoneme ph="kæt">cat</phoneme> '
        '<prosody rate="slow">s</prosody>.'
    )
    arriving = ArrivingMarkup()
    assert "".join(arriving.push(letter) for letter in text) + arriving.close() == strip_markup(
        text
    )
    assert strip_markup(text) == "A one two cat s."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # Attributes have no elements, so an alias cannot lead to itself.
        ('<sub alias="&lt;sub alias=&quot;a&quot;&gt;b&lt;/sub&gt;">c</sub> d', "d"),
        ('<sub alias="c">c</sub>', "c"),
        ('<sub alias="a"><sub alias="b">c</sub></sub>', "b"),
        ('<sub alias="a">' * 40 + "c" + "</sub>" * 40, "a"),
    ],
)
def test_aliases_are_not_read_again(text: str, said: str) -> None:
    assert said in strip_markup(text)
    assert len(strip_markup(text)) < len(text)
