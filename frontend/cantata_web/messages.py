"""The page's texts in other languages than English: a file of messages for each.

A message's key is the English text, as markup has it or as scripts give it to `t`. `{name}` stands
for a value, and in markup `{1}`, `{2}` for the elements `<kbd>` and `<code>` inside the text.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

FOLDER = Path(__file__).parent / "messages"
ENGLISH = "en"

TextForms = str | Mapping[str, str]
"""A text, or its forms by plural category (Unicode CLDR's: `one`, `few`, `other`, ...)."""

_LITERAL = r'"(?:[^"\\\n]|\\.)*"'
_JOINED = rf"{_LITERAL}(?:\s*\+\s*{_LITERAL})*"
_FORMS = rf"\{{\s*one: {_LITERAL},\s*other: ({_LITERAL}),?\s*\}}"
_CALL = re.compile(rf"(?<![\w.$])t\(\s*(?:({_JOINED})|{_FORMS})")
_ELEMENT = re.compile(r"<(kbd|code)\b[^>]*>([^<]*)</\1>")
_RUN_OR_TAG = re.compile(r"(?P<run>(?:[^<]|<(kbd|code)\b[^>]*>[^<]*</\2>)+)|<[^>]*>")
_ATTRIBUTE = re.compile(r'( (?:aria-label|placeholder|name="description" content)=)"([^"]*)"')
_WORDS = re.compile(r"[^\W\d_]|\d\.\d")
_VALUE = re.compile(r"\$\{?\w+\}?|\{\d+\}")
_PLACE = re.compile(r"\{(\d+)\}")
_QUALITY = re.compile(r"0(?:\.\d{0,3})?|1(?:\.0{0,3})?")


@dataclass(frozen=True)
class Messages:
    language: str
    """Its tag (BCP 47)."""
    name: str
    """What it calls itself."""
    texts: Mapping[str, TextForms]

    def find(self, english: str) -> TextForms:
        """The text in this language; in English where it has none."""
        return self.texts.get(english, english)

    def translate_markup(self, markup: str) -> str:
        """Markup with its texts and names in this language; whatever has `translate="no"` stays."""
        if self.language == ENGLISH:
            return markup
        kept = False

        def translate(found: re.Match[str]) -> str:
            nonlocal kept
            if found["run"] is None:
                kept = 'translate="no"' in found[0]
                return _ATTRIBUTE.sub(self._translate_attribute, found[0])
            return found[0] if kept else self._translate_run(found[0])

        return _RUN_OR_TAG.sub(translate, markup)

    def translate_script(self, source: str) -> str:
        """A script whose calls of `t` have the texts of this language."""
        if self.language == ENGLISH:
            return source

        def translate(found: re.Match[str]) -> str:
            pieces = re.findall(_LITERAL, found[1] or found[2])
            text = self.find("".join(json.loads(piece) for piece in pieces))
            return f"t({json.dumps(text, ensure_ascii=False)}"

        return _CALL.sub(translate, source)

    def _translate_run(self, run: str) -> str:
        elements: list[str] = []

        def hold(found: re.Match[str]) -> str:
            if found[1] == "kbd" and _WORDS.search(found[2]):
                elements.append(f"<kbd>{self._translate_text(found[2])}</kbd>")
            else:
                elements.append(found[0])
            return f"{{{len(elements)}}}"

        text = _ELEMENT.sub(hold, run)
        if not _WORDS.search(_VALUE.sub("", text)):
            return run
        before, after = text[: -len(text.lstrip())], text[len(text.rstrip()) :]
        translated = self._translate_text(" ".join(text.split()))
        filled = _PLACE.sub(lambda found: elements[int(found[1]) - 1], translated)
        return f"{before}{filled}{after}"

    def _translate_attribute(self, found: re.Match[str]) -> str:
        return f'{found[1]}"{self._translate_text(found[2])}"'

    def _translate_text(self, markup: str) -> str:
        return html.escape(str(self.find(html.unescape(markup))))


@cache
def read_messages(language: str) -> Messages:
    """The messages of one of `list_languages`."""
    if language == ENGLISH:
        return Messages(ENGLISH, "English", MappingProxyType({}))
    found = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return Messages(language, found["name"], found["texts"])


@cache
def list_languages() -> tuple[str, ...]:
    """Tags of the languages that the page speaks, English first."""
    return ENGLISH, *sorted(path.stem for path in FOLDER.glob("*.json"))


def choose_language(asked: str | None, accepted: str) -> str:
    """The language of the page for one request.

    Args:
        asked: a tag that was asked for by name; if the page does not speak it, it speaks English.
        accepted: an `Accept-Language` header (RFC 9110, 12.5.4). A region's language is its
            language's: `de-AT` is German.
    """
    wanted = [asked] if asked is not None else _sort_languages(accepted)
    for tag in wanted:
        language = tag.partition("-")[0].lower()
        if language in list_languages():
            return language
        if language == "*":
            break
    return ENGLISH


def _sort_languages(accepted: str) -> list[str]:
    """The tags of an `Accept-Language` header, the most wanted first."""
    ranges = []
    for part in accepted.split(","):
        tag, _, weight = part.replace(" ", "").partition(";q=")
        quality = float(weight) if _QUALITY.fullmatch(weight) else float(weight == "")
        if quality > 0:
            ranges.append((quality, tag))
    return [tag for _, tag in sorted(ranges, key=lambda one: one[0], reverse=True)]
