"""Every language has every text of the page, with the same values in it, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from cantata_web.messages import ENGLISH, Messages, TextForms, list_languages, read_messages
from cantata_web.sources import HERE, SCRIPTS

VALUE = re.compile(r"\{\w+\}")
FORMS = re.compile(r'\bother:\s*"((?:[^"\\]|\\.)*)"')
OTHERS = [language for language in list_languages() if language != ENGLISH]


class Notes(dict[str, TextForms]):
    """Notes which texts are looked for, and puts a mark in their place."""

    def get(self, key: str, default: Any = None) -> Any:
        self[key] = "§"
        return "§"


def list_markup() -> Iterator[str]:
    # The component is another package's, whose apps have languages of their own; the guide is in
    # English.
    for path in (HERE / "markup").glob("*.html"):
        if path.stem not in ("component", "guide"):
            yield path.read_text(encoding="utf-8")


def list_scripts() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in SCRIPTS.rglob("*.js")]


@pytest.fixture(scope="module")
def english() -> set[str]:
    notes = Notes()
    messages = Messages("xx", "", notes)
    for markup in list_markup():
        messages.translate_markup(markup)
    for script in list_scripts():
        messages.translate_script(script)
    return set(notes)


def test_each_call_has_a_literal_text_which_is_replaced() -> None:
    messages = Messages("xx", "", Notes())
    for script in list_scripts():
        translated = messages.translate_script(script)
        assert re.findall(r'(?<![\w.$])(?<!function )t\((?!"§").*', translated) == []


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_exactly_the_texts_of_the_page(language: str, english: set[str]) -> None:
    texts = read_messages(language).texts
    assert len(english) > 500
    assert sorted(english - set(texts)) == [], "missing"
    assert sorted(set(texts) - english) == [], "not on the page"


@pytest.mark.parametrize("language", OTHERS)
def test_translations_keep_the_values_and_have_no_markup(language: str) -> None:
    counted = {text for script in list_scripts() for text in FORMS.findall(script)}
    for text, message in read_messages(language).texts.items():
        assert (text in counted) == (not isinstance(message, str)), text
        forms = {"other": message} if isinstance(message, str) else message
        assert "other" in forms, text
        for form in forms.values():
            assert form == form.strip() != "" or text.startswith(":"), text
            assert set(VALUE.findall(form)) | {"{count}"} == set(VALUE.findall(text)) | {"{count}"}
            assert not re.search(r"[<>&$\\|]", form), form


def test_markup_keeps_its_elements_and_what_is_not_to_be_translated() -> None:
    texts = {"{1} of {2} speaks": "{2}: {1} „spricht“", "Ctrl": "Strg", "A & B": "A < B"}
    markup = (
        '<p title="$x">\n  <kbd>Ctrl</kbd> of\n  <code>a b</code> speaks</p>$y'
        '<b translate="no">Ctrl</b><i aria-label="A &amp; B">1</i>'
    )
    assert Messages("xx", "", texts).translate_markup(markup) == (
        '<p title="$x">\n  <code>a b</code>: <kbd>Strg</kbd> „spricht“</p>$y'
        '<b translate="no">Ctrl</b><i aria-label="A &lt; B">1</i>'
    )


def test_scripts_get_texts_and_forms() -> None:
    texts: dict[str, TextForms] = {
        "One two": "Eins „zwei“",
        "{count} words": {"one": "{count} Wort", "other": "{count} Wörter"},
    }
    forms = '{\n one: "{count} word",\n other: "{count} words",\n}'
    source = f'say(t("One " +\n  "two"), t({forms}, {{ n }}));'
    assert Messages("xx", "", texts).translate_script(source) == (
        'say(t("Eins „zwei“"), t({"one": "{count} Wort", "other": "{count} Wörter"}, { n }));'
    )
