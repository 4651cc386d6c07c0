"""Rules for words: acronyms, mixed case, letters with digits, and lengthened words."""

from __future__ import annotations

import re

from cantata_layers.english import acronyms, numbers
from cantata_layers.english.fixes import FIXES
from cantata_layers.english.lexicon import load_lexicon
from cantata_layers.english.tokens import Expansion, Item, Spoken, rule, say, say_span, word_set

_MIXED_CASE = {
    "IoT": "I O T",
    "macOS": "mac O S",
    "iOS": "I O S",
    "SaaS": "saas",
    "PostgreSQL": "postgres Q L",
    "mRNA": "M R N A",
    "PhD": "P H D",
    "pH": "P H",
    "LaTeX": "latex",
    "CoV": "co V",
}
_VOWEL = re.compile(r"[aeiouy]")
_LENGTHENED_LATER = re.compile(r"(.)(?!\1)(.)\2\2")
_CASE_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", re.ASCII)
_NEIGHBOUR_BEFORE = re.compile(r"([A-Z]{2,30})[\s,]{1,3}$", re.ASCII)
_NEIGHBOUR_AFTER = re.compile(r"[\s,]{1,3}([A-Z]{2,30})\b", re.ASCII)
_NO_NOUN_AFTER = re.compile(r"\s*(?:$|[^\s\w\"'(])|\s+(?:and|or|to|is|was)\b", re.ASCII)
_LETTER_BEFORE = re.compile(
    r"(?:\d|\b(?:plan|vitamin|grade|option|type|class|section|hepatitis|group|team|level|appendix"
    r"|point|exhibit|series|model|side|part|letter|an))\s$",
    re.ASCII | re.IGNORECASE,
)
# In "a + b" and "a[i]" it is no article.
_VARIABLE_AFTER = re.compile(r"\s(?:[=<>+*/^&@-]{1,3}|\\[a-z]{2,9})\s|[=<>+*/^_\[²³⁴]", re.ASCII)
_SEVERAL = re.compile(r"(?P<name>[A-Z]{1,6})(?P<number>\d{1,4})s", re.ASCII)
_MAX_SPELLED = 5
_ELEMENTS = word_set(
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Ti V Cr Mn Fe Co Ni Cu Zn Br Ag I Ba "
    "Au Hg Pb U"
)
_NAME_PREFIXES = word_set("Mc Mac De Di Du La Le Van Fitz")


def spell(letters: str, start: int) -> list[Item]:
    """Returns the names of letters, each with its own span."""
    return [Spoken(char.upper(), start + i, start + i + 1) for i, char in enumerate(letters)]


def is_listed(word: str) -> bool:
    """Whether a lower-case word has a listed pronunciation."""
    return word in FIXES or word in load_lexicon()


def is_speakable(word: str) -> bool:
    """Whether a lower-case word is listed or could be pronounced from its spelling."""
    return is_listed(word) or (_VOWEL.search(word) is not None and len(word) > 1)


def word_items(text: str, start: int) -> list[Item]:
    """Reads one run of letters in any case."""
    lower = text.lower()
    if len(text) == 1:
        return [_single_letter(text, start, start + 1)]
    if text in _MIXED_CASE:
        return say_span(start, start + len(text), _MIXED_CASE[text])
    if text.isupper():
        return _capitals(text, start)
    if is_listed(lower):
        return [Spoken(lower, start, start + len(text))]
    parts = list(_CASE_PARTS.finditer(text))
    if len(parts) > 1 and parts[0][0] not in _NAME_PREFIXES:
        return [item for part in parts for item in word_items(part[0], start + part.start())]
    shortened = shorten(lower)
    if len(shortened) == 1:
        return [_single_letter(shortened, start, start + len(text))]
    if (
        shortened not in load_lexicon()
        and not is_speakable(shortened)
        and len(text) <= _MAX_SPELLED
    ):
        return spell(text, start)
    return [Spoken(shortened, start, start + len(text))]


def _single_letter(letter: str, start: int, end: int) -> Spoken:
    """Reads a letter as the article or by name."""
    return Spoken("a" if letter == "a" else letter.upper(), start, end)


def _capitals(text: str, start: int) -> list[Item]:
    lower = text.lower()
    shortened = shorten(lower)
    # "SOOO" and "YESSS" are shouted; "WWW" and "SSSI" start with the repeat, so they are letters.
    if _LENGTHENED_LATER.search(lower) and is_listed(shortened):
        return [Spoken(shortened, start, start + len(text))]
    if text in acronyms.SAID or acronyms.is_word(text):
        return [Spoken(lower, start, start + len(text))]
    if len(text) > _MAX_SPELLED and is_speakable(lower):
        return [Spoken(lower, start, start + len(text))]
    return spell(text, start)


def shorten(word: str) -> str:
    """Undoes lengthening: "sooooo" is "so", "goooood" is "good", "hmmmm" is "hmm"."""
    if re.search(r"(.)\1\1", word) is None or word in load_lexicon():
        return word
    doubled = re.sub(r"(.)\1{2,}", r"\1\1", word)
    single = re.sub(r"(.)\1{2,}", r"\1", word)
    # The final vowel is lengthened in "so", the double vowel in "good".
    ends_in_vowel = re.search(r"([aeiouy])\1\1$", word) is not None
    choices = (single, doubled) if ends_in_vowel else (doubled, single)
    return next((choice for choice in choices if choice in load_lexicon()), doubled)


def _is_shouted(match: re.Match[str]) -> bool:
    """Whether a neighbour is an ordinary word in capitals, which rules out an acronym."""
    text = match.string
    before = _NEIGHBOUR_BEFORE.search(text, max(0, match.start() - 34), match.start())
    after = _NEIGHBOUR_AFTER.match(text, match.end())
    names = [found[1] for found in (before, after) if found is not None]
    return any(map(acronyms.is_word, names))


def _word(match: re.Match[str]) -> Expansion:
    text, start = match[0], match.start()
    if "'" in text:
        return _with_apostrophe(text, start)
    if text == "A" and not _is_letter_a(match):
        return [Spoken("a", start, start + 1)]
    if text == "a" and _VARIABLE_AFTER.match(match.string, match.end()):
        return [Spoken("A", start, start + 1)]
    if text.isupper() and _may_be_shouted(text) and _is_shouted(match):
        return [Spoken(text.lower(), start, match.end())]
    return word_items(text, start)


def _may_be_shouted(text: str) -> bool:
    """Whether capitals are a word when their neighbours are shouted."""
    if text in acronyms.WORDS_TOO:
        return True
    return len(text) > 3 and text not in acronyms.SPELLED and is_listed(text.lower())


def _is_letter_a(match: re.Match[str]) -> bool:
    """Distinguishes "plan A" and "an A" from the article in "A plan" and "Once Upon A Time"."""
    if _NO_NOUN_AFTER.match(match.string, match.end()):
        return True
    left = match.string[max(0, match.start() - 20) : match.start()]
    return _LETTER_BEFORE.search(left) is not None


def _with_apostrophe(text: str, start: int) -> list[Item]:
    lower = text.lower()
    if lower in load_lexicon():
        return [Spoken(lower, start, start + len(text))]
    if "'" not in text[1:]:
        return word_items(text.strip("'"), start + text.startswith("'"))
    head, _, tail = text.rpartition("'")
    if len(head) == 1 and len(tail) > 2:
        # "D'Artagnan", "L'Oreal": one word.
        return [Spoken(lower, start, start + len(text))]
    items = _with_apostrophe(head, start) if "'" in head else word_items(head, start)
    last = items[-1]
    if isinstance(last, Spoken) and len(tail) <= 2:
        joined = Spoken(f"{last.word}'{tail.lower()}", last.start, start + len(text))
        return [*items[:-1], joined]
    return items + word_items(tail, start + len(head) + 1)


def _plural_letters(match: re.Match[str]) -> Expansion:
    """Reads "CDs" and "PhDs" as letter names, the last one in the plural."""
    letters = match["letters"]
    if letters in acronyms.SAID or acronyms.is_word(letters):
        return [Spoken(match[0].lower(), match.start(), match.end())]
    if match[0].lower() in load_lexicon() and len(letters) > 3:
        return None
    *head, last = spell(match["letters"], match.start())
    assert isinstance(last, Spoken)
    return [*head, Spoken(f"{last.word}'s", last.start, match.end())]


def _letters_and_digits(match: re.Match[str]) -> Expansion:
    """Reads "MP3", "4K" and "x86": short letter runs by name, digits in groups."""
    items: list[Item] = []
    several = _SEVERAL.fullmatch(match[0])
    if several is not None:
        return _plural_name(several, match.start())
    for part in re.finditer(r"[A-Za-z]+|\d+", match[0]):
        start = match.start() + part.start()
        text = part[0]
        if text.isdigit():
            items += say_span(start, start + len(text), numbers.grouped(text))
        elif len(text) <= 2:
            items += spell(text, start)
        else:
            items += word_items(text, start)
    return items


def _plural_name(several: re.Match[str], start: int) -> list[Item]:
    """Reads "MP3s" as "M P threes"."""
    name, words = several["name"], numbers.plural(numbers.grouped(several["number"]))
    place = start + len(name)
    items = spell(name, start) if len(name) <= 2 else word_items(name, start)
    return items + say_span(place, start + len(several[0]), words)


def _joined_letters(match: re.Match[str]) -> Expansion:
    """Reads "AT&T" and "R&D" letter by letter."""
    left, right, ending = match["left"], match["right"], match["ending"] or ""
    middle = match.start() + len(left)
    *letters, last = spell(right, middle + 1)
    assert isinstance(last, Spoken)
    return [
        *spell(left, match.start()),
        *say_span(middle, middle + 1, "and"),
        *letters,
        Spoken(last.word + ("'s" if ending else ""), last.start, match.end()),
    ]


def _product(match: re.Match[str]) -> Expansion:
    return spell(match[0], match.start())


def _and(match: re.Match[str]) -> Expansion:
    return say(match, "and")


MIXED = rule(
    r"(?:[A-Za-z]{1,30}\d{1,30}|\d{1,30}[A-Za-z]{1,30})[A-Za-z0-9]{0,60}", _letters_and_digits
)


def _chemical(match: re.Match[str]) -> Expansion:
    """Reads "NaCl" and "CaCO3" letter by letter."""
    text = match[0]
    symbols = re.findall(r"[A-Z][a-z]?", text)
    if not _ELEMENTS.issuperset(symbols) or not any(len(symbol) > 1 for symbol in symbols):
        return None
    if is_listed(text.lower()) or text in _MIXED_CASE:
        return None
    items: list[Item] = []
    for part in re.finditer(r"[A-Za-z]+|\d+", text):
        start = match.start() + part.start()
        if part[0].isdigit():
            items += say_span(start, start + len(part[0]), numbers.number(part[0]))
        else:
            items += spell(part[0], start)
    return items


def _ion(match: re.Match[str]) -> Expansion:
    """Reads "Na+", "Ca2+", "SO4 2-" and "Cl- ions" letter by letter, and the charge."""
    symbols = re.findall(r"[A-Z][a-z]?", match["formula"])
    if not _ELEMENTS.issuperset(symbols):
        return None
    # "He+", "OH-" and "B- average" are no ions unless the text says so.
    if len(symbols) > 1:
        certain = re.search(r"[a-z\d]", match["formula"]) is not None
    else:
        certain = len(symbols[0]) > 1 and symbols[0] not in (
            _NO_CATIONS if match["sign"] == "+" else _NO_ANIONS
        )
    if not certain and _ION_AFTER.match(match.string, match.end()) is None:
        return None
    start, items = match.start(), list[Item]()
    for part in re.finditer(r"[A-Za-z]+|\d+|[²³+\u2212-]", match[0]):
        place, text = start + part.start(), part[0]
        if text.isalpha():
            items += spell(text, place)
        else:
            said = _CHARGES.get(text) or numbers.number(text)
            items += say_span(place, place + len(text), said)
    return items


_CHARGES = {"+": ["plus"], "-": ["minus"], "\u2212": ["minus"], "²": ["two"], "³": ["three"]}
_NO_CATIONS, _NO_ANIONS = word_set("He Be"), _ELEMENTS - word_set("Cl Br")
_ION_AFTER = re.compile(
    r"\s(?:ions?|cations?|anions?|channels?|levels?|concentrations?|transporters?|pumps?|salts?)\b",
    re.ASCII,
)
ION = rule(
    r"(?<!\w)(?P<formula>(?:[A-Z][a-z]?\d?){1,6})(?:\s?\d|[²³])?(?P<sign>[+\u2212-])(?=\s|[,.;:)]|$)(?!\s\d)",
    _ion,
)
CHEMICAL = rule(r"(?<!\w)(?:[A-Z][a-z]?\d{0,3}){2,8}(?!\w)", _chemical)
RULES = (
    rule(r"(?<![A-Za-z0-9])'[nN]'(?!\w)", _and),
    rule(r"(?P<left>[A-Z]{1,3})&(?P<right>[A-Z]{1,3})(?P<ending>'?s)?(?!\w)", _joined_letters),
    rule(r"(?<=[=\s])mc(?=[²^])", _product),
    rule(r"(?P<letters>[A-Z]{2,5}|PhD)s(?![A-Za-z0-9'])", _plural_letters),
    rule(r"'?[A-Za-z]{1,500}(?:'[A-Za-z]{1,20}){0,4}", _word),
)
