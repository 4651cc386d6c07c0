# ruff: noqa: RUF001 (phones that look like letters are what this file is about)
"""Castilian Spanish to phones, as Kokoro's voices learnt them: with theta, without seseo."""

from __future__ import annotations

import re

from cantata_layers.g2p.letter_rules import (
    STRESS,
    LetterRules,
    compile_changes,
    list_words,
    mark_stress,
    substitute,
)
from cantata_layers.g2p.spelled_words import Spelling, count_in, weaken

_RULES = LetterRules(
    (
        ("qu(?=[eiéí])", "k"),
        ("gü(?=[eiéí])", "ɡw"),
        ("gu(?=[eiéí])", "ɡ"),
        ("g(?=[eiéí])", "x"),
        ("cc(?=[eiéí])", "kθ"),
        ("sc(?=[eiéí])", "sθ"),
        ("c(?=[eiéí])", "θ"),
        ("ch", "ʧ"),
        ("sh", "ʃ"),
        ("^ps", "s"),
        ("ph", "f"),
        ("th", "t"),
        ("ll", "ʎ"),
        ("rr", "r"),
        ("^r|(?<=[nls])r", "r"),
        ("r", "ɾ"),
        ("(?<=[aeiouáéíóú])h", "h"),
        ("ck|k$", "k"),
        ("y(?=[aeiouáéíóú])", "ʝ"),
        ("y", "i"),
        ("(?<=^mé)x(?=ic)|(?<=^me)x(?=ic)", "x"),
        ("^x", "s"),
        ("x", "ks"),
        ("z", "θ"),
        ("ñ", "ɲ"),
        ("j", "x"),
        ("[bv]", "b"),
        ("g", "ɡ"),
        ("c|k|q", "k"),
        ("ü|w", "w"),
        ("ç", "s"),
        (r"([aeiouáéíóúdfklmnpst])", r"\1"),
    )
)
_EXCEPTIONS = {"muy": "mˈuj"}
_PLAIN = str.maketrans("áéíóú", "aeiou")
_GLIDES = compile_changes(
    ("(?<=[aeo])i(?![aeiouáéíóú])", "ɪ"),
    ("(?<=[aeo])u(?![aeiouáéíóú])", "ʊ"),
    ("i(?=[aeouáéóú])", "j"),
    ("u(?=[aeoiáéóí])", "w"),
)
_NUCLEUS = re.compile("[aeiou]")
_DIPHTHONGS = compile_changes(("aɪ", "I"), ("aʊ", "W"), ("eɪ", "A"), ("oʊ", "ow"))
_ALLOPHONES = compile_changes(
    ("n(?=[ɡx])", "ŋ"),
    ("n(?=[bp]|f[lɾ])", "m"),
    ("p(?=t)", "pː"),
    ("(?<=[^m ])b(?=[aeioujwɾlsxˈˌ])", "β"),
    ("(?<=[^n ])d(?=[aeioujwɾlbβˈˌ])", "ð"),
    ("(?<=ð)b", "β"),
    ("(?<=[^ŋ ])ɡ(?=[aeioujwɾlˈˌ])", "ɣ"),
    # Behind r, and l with a consonant, a voice learnt two syllables.
    ("(?<=r)j|(?<=[^aeiou][lɾ])j", "i"),
    ("(?<=[rl])w|(?<=[^aeiou]ɾ)w", "u"),
    ("h", ""),
)
_OPEN = compile_changes(("ˈe(?=[nŋ][^aeioujwɪʊˈˌ])", "ˈɛ"))
_NAMES = dict(
    zip(
        "abcdefghijklmnñopqrstuvwxyz",
        list_words(
            "a be ce de e efe ge hache i jota ka ele eme ene eñe o pe cu erre ese te u uve "
            "uvedoble equis ye zeta"
        ),
        strict=True,
    )
)


def say_word(word: str) -> str:
    """The phones of a word in small letters, as it is said alone."""
    if word in _EXCEPTIONS:
        return _EXCEPTIONS[word]
    if word in _NAMES:
        return say_word(_NAMES[word]) if len(_NAMES[word]) > 1 else STRESS + word
    if word.endswith("mente") and len(word) > len("mente") + 2:
        return say_word(word[:-5]) + "mˈente"
    letters = substitute(_RULES.apply(word), _GLIDES)
    accent = re.search("[áéíóú]", letters)
    phones = letters.translate(_PLAIN)
    nuclei = [match.start() for match in _NUCLEUS.finditer(phones)]
    if not nuclei:
        return substitute(phones, _ALLOPHONES)
    if accent:
        stressed = nuclei.index(accent.start())
    else:
        is_late = word[-1] not in "aeiouns"
        stressed = len(nuclei) - 1 if is_late else max(len(nuclei) - 2, 0)
    marked = mark_stress(phones, nuclei, stressed, range(0, stressed - 1, 2))
    said = substitute(substitute(marked, _DIPHTHONGS), _ALLOPHONES)
    return said if accent else substitute(said, _OPEN)


def _link(before: str, after: str) -> tuple[str, str]:
    """Within a phrase, n sounds like what follows, and b, d and g are soft behind the rest."""
    first = after[:1]
    if before.endswith("n"):
        nasal = {"b": "m", "p": "m", "m": "m", "ɡ": "ŋ", "k": "n"}.get(first, "n")
        return before[:-1] + nasal, after
    return before, {"b": "β", "d": "ð", "ɡ": "ɣ"}.get(first, first) + after[1:]


_WEAK = list_words(
    "el la los las de en y e o u que con por para se su sus mi mis tu tus me te lo le "
    "les nos os si sin al del a como pero entre sobre desde hasta cuando porque donde "
    "quien hacia ante bajo tras"
)
SPANISH = Spelling(
    count=count_in("es"),
    say_word=say_word,
    weak={"y": "i", **{word: weaken(say_word(word)) for word in _WEAK if word not in "y"}},
    comma="coma",
    minus="menos",
    signs={
        "%": "por ciento",
        "€": "euros",
        "$": "dólares",
        "£": "libras",
        "&": "y",
        "+": "más",
        "=": "igual a",
        "@": "arroba",
        "°": "grados",
    },
    short={
        "sr.": "señor",
        "sra.": "señora",
        "srta.": "señorita",
        "dr.": "doctor",
        "dra.": "doctora",
        "ud.": "usted",
        "uds.": "ustedes",
        "etc.": "etcétera",
        "km": "kilómetros",
        "kg": "kilogramos",
        "cm": "centímetros",
    },
    link=_link,
)
