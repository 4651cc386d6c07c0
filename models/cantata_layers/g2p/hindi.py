# ruff: noqa: RUF001 (phones that look like letters are what this file is about)
"""Hindi to phones, as Kokoro's voices learnt them.

Every consonant has a short a unless a sign says otherwise. The last one of a word is silent, and so
are those between two syllables.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from cantata_layers.g2p.letter_rules import (
    SECONDARY,
    STRESS,
    compile_changes,
    list_words,
    substitute,
)
from cantata_layers.g2p.spelled_words import Spelling

_CONSONANTS = dict(
    zip(
        "कखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसहळ",
        list_words("k kʰ ɡ ɡʰ ŋ c cʰ ɟ ɟʰ ɲ ʈ ʈʰ ɖ ɖʰ ɳ t tʰ d dʰ n p pʰ b bʰ m j ɾ l ʋ ʃ ʂ s h l"),
        strict=True,
    )
)
_WITH_DOT = {"क": "q", "ख": "x", "ग": "ɣ", "ज": "z", "ड": "r.", "ढ": "r.h", "फ": "f"}
_SOUNDS = list_words("aː ɪ iː ʊ uː ɾɪ eː ɛː oː ɔː ɔ æ")
_VOWELS = {"अ": "ə", **dict(zip("आइईउऊऋएऐओऔऑऍ", _SOUNDS, strict=True))}
_SIGNS = dict(zip("ािीुूृेैोौॉॅ", _SOUNDS, strict=True))
_DOT, _SILENT = "\u093c", "\u094d"
_NASALS = "ंँ"


@dataclass(slots=True)
class _Syllable:
    consonant: str
    vowel: str
    """`ə` where nothing is written; empty where the consonant belongs to the next one."""
    is_nasal: bool = False
    is_silent: bool = False
    """Its short a is written, and not said."""
    mark: str = ""
    """Of stress."""


def say_word(word: str) -> str:
    """The phones of a word, as it is said alone."""
    syllables = list(_read(unicodedata.normalize("NFD", word)))
    _silence(syllables)
    _stress(syllables)
    phones = "".join(
        one.consonant + (one.mark + one.vowel + "N" * one.is_nasal) * (not one.is_silent)
        for one in syllables
    )
    return unicodedata.normalize("NFD", substitute(phones, _CHANGES))


def _read(word: str) -> Iterator[_Syllable]:
    made: _Syllable | None = None
    written = ""
    for letter in word:
        if made is not None and letter == _DOT:
            made.consonant = _WITH_DOT.get(written, made.consonant)
        elif made is not None and letter == _SILENT:
            # R may be trilled before what follows.
            made.consonant, made.vowel = made.consonant.replace("ɾ", "R"), ""
        elif made is not None and letter in _SIGNS:
            made.vowel = _SIGNS[letter]
        elif made is not None and letter in _NASALS:
            made.is_nasal = True
        else:
            if made is not None:
                yield made
            made, written = _begin(letter), letter
    if made is not None:
        yield made


def _begin(letter: str) -> _Syllable | None:
    if letter in _CONSONANTS:
        return _Syllable(_CONSONANTS[letter], "ə")
    if letter in _VOWELS:
        return _Syllable("", _VOWELS[letter])
    return _Syllable("h", "") if letter == "ः" else None


def _silence(syllables: list[_Syllable]) -> None:
    """Mark the short a that is not said: the last one, and from the end those with a vowel before
    and a consonant with a vowel behind."""
    if sum(bool(one.vowel) for one in syllables) < 2:
        return
    *_, before, last = syllables
    is_cluster = not before.vowel
    keeps = is_cluster and last.consonant in (
        ("j", "ɳ") if before.consonant == "R" else ("j", "ɾ", "n", "ɳ", "m", "l")
    )
    last.is_silent = last.vowel == "ə" and bool(last.consonant) and not (last.is_nasal or keeps)
    for index in range(len(syllables) - 2, 0, -1):
        before, here, after = syllables[index - 1 : index + 2]
        is_between = before.vowel and after.consonant and after.vowel and not after.is_silent
        can_go = here.vowel == "ə" and here.consonant not in ("", "h") and not here.is_nasal
        here.is_silent = bool(is_between and can_go)


def _stress(syllables: list[_Syllable]) -> None:
    """Mark the last syllable if it is very heavy, or the last but one if heavy, or else the one
    before; and weakly, every other one from there. Silent ones between two count."""
    spoken = [index for index, one in enumerate(syllables) if one.vowel]
    if spoken and syllables[spoken[-1]].is_silent:
        spoken.pop()
    if not spoken:
        return
    weights = [_weigh(syllables, index) for index in spoken]
    main = max(len(spoken) - 3, 0)
    if weights[-1] > _HEAVY or len(spoken) == 1:
        main = len(spoken) - 1
    elif len(spoken) == 2 or weights[-2] >= _HEAVY:
        main = len(spoken) - 2
    for place, index in enumerate(spoken):
        if (place - main) % 2 == 0:
            syllables[index].mark = STRESS if place == main else SECONDARY


def _weigh(syllables: list[_Syllable], index: int) -> int:
    """Its vowel, twice if long, and the consonants that close it."""
    one = syllables[index]
    if one.is_silent:
        return 0
    closing = 0
    for after in syllables[index + 1 :]:
        if after.vowel and not after.is_silent:
            break
        closing += bool(after.consonant)
        if after.vowel and after is not syllables[-1]:
            closing = 0  # it is a syllable of its own for the stress
            break
    is_long = one.vowel not in ("ə", "ɪ", "ʊ", "ɾɪ")
    return 1 + is_long + min(closing, 2) + (one.is_nasal and not is_long)


_HEAVY = 2
_CHANGES = compile_changes(
    ("kʂ", "kʃ"),
    ("ɟɲ", "ɡj"),
    ("c(?=cʰ)", "cʰ"),
    ("R(?=[mʂʃjɳnʋlsh])", "r"),
    ("R", "ɾ"),
    ("^ˈə|ˈə", "ˈʌ"),
    ("^ə", "ʌ"),
    ("^ˌə", "ˌʌ"),
    ("aːˌ?oːN$", "aːw"),
    ("iː(?=$|N$)", "i"),
    ("(?<![ˈˌ])iː", "i"),
    ("ə(?=j$)", "ɛ"),
    ("aːN", "ã"),
    ("eːN", "ẽː"),
    ("([oɔɛiu])ː?N", "\\1̃"),
    ("ɪN(?=.)", "ĩ"),
    ("ʊN(?=.)", "ũ"),
    ("N$", "n"),
    ("N(?=[kɡ])", "ŋ"),
    ("N(?=[cɟ])", "ɲ"),
    ("N(?=[ʈɖ])", "ɳ"),
    ("N(?=[pbm])", "m"),
    ("N", "n"),
    ("([kɡcɟʈɖtdpb])\\1(ʰ?)(?!ʰ)", "\\1\\2ː"),
    ("([tk])(?=j)", "\\1ː"),
    ("^p(?=j)", "pː"),
)

_NUMBERS = list_words(
    "शून्य एक दो तीन चार पाँच छह सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस "
    "बीस इक्कीस बाईस तेईस चौबीस पच्चीस छब्बीस सत्ताईस अट्ठाईस उनतीस तीस इकतीस बत्तीस तैंतीस चौंतीस पैंतीस "
    "छत्तीस सैंतीस अड़तीस उनतालीस चालीस इकतालीस बयालीस तैंतालीस चौवालीस पैंतालीस छियालीस सैंतालीस अड़तालीस "
    "उनचास पचास इक्यावन बावन तिरपन चौवन पचपन छप्पन सत्तावन अट्ठावन उनसठ साठ इकसठ बासठ तिरसठ चौंसठ "
    "पैंसठ छियासठ सड़सठ अड़सठ उनहत्तर सत्तर इकहत्तर बहत्तर तिहत्तर चौहत्तर पचहत्तर छिहत्तर सतहत्तर अठहत्तर "
    "उन्यासी अस्सी इक्यासी बयासी तिरासी चौरासी पचासी छियासी सत्तासी अट्ठासी नवासी नब्बे इक्यानवे बानवे "
    "तिरानवे चौरानवे पचानवे छियानवे सत्तानवे अट्ठानवे निन्यानवे"
)
_SCALES = ((10**7, "करोड़"), (10**5, "लाख"), (1000, "हज़ार"), (100, "सौ"))


def count(number: int, is_ordinal: bool = False) -> str:
    """A number as words; ordinals are not written in digits."""
    words = list[str]()
    for scale, name in _SCALES:
        if number >= scale:
            words += [count(number // scale), name]
            number %= scale
    if number or not words:
        words.append(_NUMBERS[number])
    return " ".join(words)


HINDI = Spelling(
    count=count,
    say_word=say_word,
    weak={
        **{
            word: say_word(word).replace(STRESS, "")
            for word in list_words("के है की से और को का हैं हो था ये क्या थे थी वो मैं वे हूँ में जो तो ने ही")
        },
        **{
            word: say_word(word).replace(STRESS, SECONDARY).replace("ʌ", "ə")
            for word in list_words("यह आप रहे रहा तक हम वह रही मेरे मेरी मेरा मुझे तेरा तुझे")
        },
    },
    comma="दशमलव",
    minus="ऋण",
    signs={"%": "प्रतिशत", "₹": "रुपये", "$": "डॉलर", "€": "यूरो", "+": "जमा", "=": "बराबर"},
    short={"डॉ.": "डॉक्टर"},
    thousands=",",
    reads_latin=False,
    vowels="",
)
