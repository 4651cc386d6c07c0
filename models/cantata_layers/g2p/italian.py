# ruff: noqa: RUF001 (phones that look like letters are what this file is about)
"""Italian to phones, as Kokoro's voices learnt them.

The spelling does not show where a word without an accent is stressed, nor whether a stressed e or o
is open: endings and a list of frequent words say it, the last syllable but one where they do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cantata_layers.g2p.italian_words import MARKED
from cantata_layers.g2p.letter_rules import (
    STRESS,
    LetterRules,
    compile_changes,
    list_words,
    mark_stress,
    substitute,
)
from cantata_layers.g2p.spelled_words import Spelling, count_in, weaken

_VOWELS = "aeiouàèéìíòóùú"
_RULES = LetterRules(
    (
        (f"gli(?=[{_VOWELS}])", "ʎ"),
        ("gli", "ʎi"),
        ("gn", "ɲ"),
        (f"sci(?=[{_VOWELS}])", "ʃ"),
        ("sc(?=[eièéìí])", "ʃ"),
        (f"cci(?=[{_VOWELS}])", "ʧː"),
        (f"ci(?=[{_VOWELS}])", "ʧ"),
        ("cc(?=[eièéìí])", "ʧː"),
        ("c(?=[eièéìí])", "ʧ"),
        (f"ggi(?=[{_VOWELS}])", "ʤː"),
        (f"gi(?=[{_VOWELS}])", "ʤ"),
        ("gg(?=[eièéìí])", "ʤː"),
        ("g(?=[eièéìí])", "ʤ"),
        ("cch", "kː"),
        ("ggh", "ɡː"),
        ("ch", "k"),
        ("gh", "ɡ"),
        ("cqu", "kːw"),
        ("cc|ck|kk", "kː"),
        ("gg", "ɡː"),
        ("(?<=i)zz", "ʣː"),
        ("zz", "ʦː"),
        ("ss", "S"),
        ("ll$", "l"),
        ("^z", "ʣ"),
        ("z", "ʦ"),
        (f"(?<=[{_VOWELS}])s(?=[{_VOWELS}])", "z"),
        ("s(?=[bdglmnrv])", "z"),
        (r"([bdpt])\1", r"\1ː"),
        ("h", ""),
        ("x", "ks"),
        ("y", "i"),
        ("j", "j"),
        ("w", "w"),
        ("g", "ɡ"),
        ("qu", "kw"),
        ("c|q|k", "k"),
        ("é", "é"),
        ("í", "ì"),
        ("ó", "ó"),
        ("ú", "ù"),
        (rf"([{_VOWELS}bdfklmnprstv])", r"\1"),
    )
)


_PLAIN = str.maketrans("àèéìòóù", "aɛeiɔou")
_NUCLEUS = re.compile("[aeiouɛɔ]")
_GLIDES = compile_changes(
    # J is an i that makes no syllable: i or j, as the stress has it.
    ("(?<=[^aeiouàèéìòóù])i(?=[aeouàèéòóù])", "J"),
    ("(?<=[aeouàèéòóù])i(?=[aeouàèéòóù])", "Y"),
    ("^i(?=[aeouàèéòóù])", "j"),
    ("^u(?=[eioàèéìòó])|(?<=ɡ)u(?=[aeioàèéìòó])", "w"),
    ("(?<=[aeàèé])u(?![aeiouàèéìòóù])", "ʊ"),
)
_STRESSED_I = re.compile(
    "^[^aeiou]*i[aoe]$|(log|graf|nom|craz|sof|fon|metr|terap|nerg|tas|oes|mpagn|tratt|latt|ller|rrer"
    "|brer|zzer|rifer)i[ae]$"
)
"""A last i of these that has a syllable of its own, and the stress."""
_EARLY = re.compile(
    "..(ic[oa]|ich[eie]|if[oa]|ogh[ei]|og[oi]|esim[oaie]|issim[oaie])$|[aeiou]col[oi]$|evol[ei]$"
    "|..(bil|sim|gin|udin|rdin|rmin)[ei]$|.[^aeiou](id|ul)[oaie]$|.(graf|metr|fon|crat)[oa]$"
    "|[aei]vano$|[ai]rono$|[aei]ssero$|[ae]bbero$|[^aeious]ono$|[^aeiou]s(c|s|p)ono$"
    "|[aeiou][^aeiou]+i?ano$|[^aeiou](and|end|ond|ut|ort|ind|ung|ing|ang|ogl|egl|iegl|olg|olv|ist|est|ess|ett|orr|esc|osc"
    "|asc|inc|ed|id|ud|eg|ig|uc|uov|omp|iv|um|im|et|att|utt|ugg|egg|igg)ere$"
    "|(nd|tt|ss|sc|rr|gl|lg|lv|ng|rd)(er[lcmts][ioae]|eri)$"
)
"""Stressed on the last syllable but two."""
_OPEN_E = re.compile(
    "e(nʦ|nd|nt[eioa]|r[^aeiou]|ll|st|bːe|nn[io]|ns|r[aoi]|n[ei]$|v|[iao]|l|m[aeo]|t[aoi]$"
    "|tr|d[Jei]|k|ɡ|tː|ʦː|Y|nʦ|r$|l$|n$|w|ʊ|p|.*[aeiou].*[aeiou])"
)
_CLOSED_E = re.compile(
    "(?<=m)e(nt[eio]$)|(?<=m)e(nto|nti|nte)|e(vol|v[aoi](no|mo)?$|sː|z[aeio]$|ɲ|ʎ|ʧː|ŋɡ|nɡ|re$|mːo$"
    "|te$|sti$|ste$|d[ei]$|ʦːa|Sero|Simo|[bt]ːer|tːi$)"
)
_CLOSED_SS = re.compile("(?<![ʧpdlr])(?<!ɡr)eS[eio]$")
_OPEN_O = re.compile(
    "o(lt[aei]|ld|rt|rd|rz|st[ra]|i|l|v|d|k|ɡ|t[oai]|p|S|r[aoJ]|nJ|rr|lɡ|ʤ|b|ʦ|tː[eo]|nn|rʦ|rk|f|ʎ"
    "|.*[aeiou].*[aeiou])"
)
_CLOSED_O = re.compile("o(n[^nJ]|rs|ls|mp|mb|rn|rm|z[oei]$|ra$|ɲ|ʃ|l[aei]$|lto|lʤ|lts)")
_CHANGES = compile_changes(
    ("(?<=[rlz])J|(?<=ʦ)J(?=ˈ?o)|(?<=[ntv])J(?!ˈ)|(?<=v)J", "i"),
    ("(?<=ˈ[aeiouɛɔ]d)J", "i"),
    ("J", "j"),
    ("Y", "i"),
    ("rr", "rɾ"),
    ("(?<=a)r(?=ˈ?a)|r(?=ˈɔ$)", "ɾ"),
    ("n(?=ɡ)", "ŋ"),
    ("(?<=ˈ[aeiouɛɔ])ɲ", "ɲɲ"),
    ("(?<![aeiouɛɔˈ])i$", "ɪ"),
    ("(?<=ˈ[au])i$", "j"),
    ("(?<!ˈ)u(?!$)", "ʊ"),
)


def say_word(word: str) -> str:
    """The phones of a word in small letters, as it is said alone."""
    if word in _NAMES:
        return say_word(_NAMES[word]) if len(_NAMES[word]) > 1 else STRESS + word
    word = MARKED.get(word, word)
    letters = _RULES.apply(word)
    if not re.search("[àèéìòóù]", letters) and _STRESSED_I.search(word):
        letters = re.sub("i(?=[aoe]$)", "ì", letters)
    letters = substitute(letters, _GLIDES)
    accent = re.search("[àèéìòóù]", letters)
    phones = letters.translate(_PLAIN)
    nuclei = [match.start() for match in _NUCLEUS.finditer(phones)]
    if not nuclei:
        return substitute(phones, _CHANGES)
    if accent:
        stressed = nuclei.index(accent.start())
    else:
        stressed = _find_stress(word, phones, nuclei)
        phones = _open_vowel(phones, nuclei[stressed])
    return substitute(mark_stress(phones, nuclei, stressed), _CHANGES)


def _find_stress(word: str, phones: str, nuclei: Sequence[int]) -> int:
    last = len(nuclei) - 1
    if phones[-1] not in "aeiou":
        # Foreign, or shortened before another word: its last vowel, if not an ending of English.
        return max(last - bool(re.search("(?<!v|t|l|p)er$|(on|an|us|um|et|al)$", word)), 0)
    return max(last - (2 if _EARLY.search(word) else 1), 0)


def _open_vowel(phones: str, place: int) -> str:
    """With its stressed e or o open, if it is."""
    is_open = False
    if phones[place] == "e":
        is_open = bool(_OPEN_E.match(phones, place)) and not _CLOSED_E.match(phones, place)
        is_open |= bool(re.match("eS", phones[place:])) and not _CLOSED_SS.search(phones)
        is_open |= phones[max(place - 1, 0) : place] in ("j", "J") and not phones.endswith("mente")
    elif phones[place] == "o":
        is_open = bool(_OPEN_O.match(phones, place)) and not _CLOSED_O.match(phones, place)
        is_open |= phones[max(place - 1, 0) : place] == "u"
    opened = {"e": "ɛ", "o": "ɔ"}[phones[place]] if is_open else phones[place]
    return phones[:place] + opened + phones[place + 1 :]


_NAMES = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        list_words(
            "a bi ci di e èffe gi àcca i ilùnga càppa èlle èmme ènne o pi cu èrre èsse ti u vu "
            "doppiavù ics ìpsilon zèta"
        ),
        strict=True,
    )
)


def _weaken(word: str) -> str:
    said = weaken(say_word(word))
    return re.sub("(?<![aeouɛɔ])i$", "ɪ", said).replace("u", "ʊ")


_WEAK = list_words(
    "il lo la i gli le un una di a da in con su per tra fra e ed o od ma che non si mi "
    "ti ci vi ne del dello della degli delle al allo alla agli alle dal dallo dalla "
    "dagli dalle nel sul sulla come se ha ho hanno mio mia tuo tua suo sua anche ogni "
    "sono perché questo questa"
)
ITALIAN = Spelling(
    count=count_in("it"),
    say_word=say_word,
    weak={
        **{word: _weaken(word) for word in _WEAK},
        "è": "e",
        "ho": "o",
        "più": "pjʊ",
        "ai": "aj",
        "dai": "daj",
        "dei": "dˌɛi",
        "i": "i",
        "per": "per",
        "del": "del",
        "me": "me",
        "te": "te",
        "nella": "nˈella",
        "nelle": "nˈelle",
        "ogni": "ˌoɲɲɪ",
        **{word: word for word in ("dell", "all", "dall", "nell", "bell", "quest")},
        "sull": "sʊll",
        "quell": "kwell",
        "mai": "mˈaj",
    },
    comma="virgola",
    minus="meno",
    signs={
        "%": "per cento",
        "€": "euro",
        "$": "dollari",
        "£": "sterline",
        "&": "e",
        "+": "più",
        "=": "uguale a",
        "@": "chiocciola",
        "°": "gradi",
    },
    short={
        "sig.": "signor",
        "sig.ra": "signora",
        "dott.": "dottor",
        "dr.": "dottor",
        "prof.": "professor",
        "ecc.": "eccetera",
        "km": "chilometri",
        "kg": "chilogrammi",
        "cm": "centimetri",
    },
)
