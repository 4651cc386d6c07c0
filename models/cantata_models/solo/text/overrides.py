# ruff: noqa: RUF001 (IPA letters that look like Latin ones are meant)
"""The caller's own phones for one word, `[[...]]`: ARPAbet, or IPA.

IPA has the symbols of General American and British English, and the capitals that misaki, Kokoro's
front end, writes for diphthongs. Symbols are read by longest match. Stress, length, syllable and
tie marks are ignored, as are the narrow marks that do not change the phone (aspiration, dark l,
non-syllabic vowels). British vowels that end in a schwa, as in "near", become a vowel and R, which
is how this voice says them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from cantata_layers.english.lexicon import PHONES
from cantata_layers.english.tokens import table
from cantata_models.solo.text.tokens import TextError

_SYMBOLS = {
    symbol: tuple(phones.split())
    for symbol, phones in table(
        """
        ɑ: AA
        ɒ: AA
        æ: AE
        a: AE
        ʌ: AH
        ə: AH
        ɐ: AH
        ɔ: AO
        aʊ: AW
        aɪ: AY
        ɛ: EH
        e: EH
        ɝ: ER
        ɚ: ER
        ɜ: ER
        ɜr: ER
        ɜɹ: ER
        ə˞: ER
        ɜ˞: ER
        ər: ER
        əɹ: ER
        eɪ: EY
        ɪ: IH
        ɨ: IH
        i: IY
        oʊ: OW
        əʊ: OW
        o: OW
        ɔɪ: OY
        ʊ: UH
        u: UW
        ʉ: UW
        ɪə: IH R
        ɪər: IH R
        ɪəɹ: IH R
        eə: EH R
        eər: EH R
        eəɹ: EH R
        ɛə: EH R
        ɛər: EH R
        ɛəɹ: EH R
        ʊə: UH R
        ʊər: UH R
        ʊəɹ: UH R
        b: B
        tʃ: CH
        ʧ: CH
        d: D
        ð: DH
        f: F
        ɡ: G
        g: G
        h: HH
        dʒ: JH
        ʤ: JH
        k: K
        x: K
        l: L
        ɫ: L
        m: M
        n: N
        ŋ: NG
        p: P
        r: R
        ɹ: R
        ɻ: R
        s: S
        ʃ: SH
        t: T
        ɾ: T
        ʔ: T
        θ: TH
        v: V
        w: W
        ʍ: W
        j: Y
        z: Z
        ʒ: ZH
        l̩: AH L
        ɫ̩: AH L
        m̩: AH M
        n̩: AH N
        A: EY
        I: AY
        O: OW
        Q: OW
        W: AW
        Y: OY
        T: T
        ᵊ: AH
        ᵊl: AH L
        ᵻ: IH
        """
    ).items()
}
_MAX_SYMBOL = max(map(len, _SYMBOLS))
_BETWEEN_SYLLABLES = re.compile(r"[ˈˌ'’.‿|\s/-]+")
# Length, ties, aspiration, devoicing, unreleased, dental, voicing and non-syllabic marks.
_NARROW = str.maketrans("", "", "ːˑ:\u0361\u035c\u02b0\u0325\u031a\u032a\u032c\u032f")
_SHOWN, _SHOWN_LETTERS = 5, 20


def ipa_phones(text: str) -> tuple[str, ...]:
    """Returns the phones of a word in IPA, with or without slashes; empty if no symbol has a sound.

    Raises TextError, listing the valid symbols, for a symbol without a phone.
    """
    phones: list[str] = []
    unknown: list[str] = []
    for symbol in _iterate_symbols(text):
        if symbol in _SYMBOLS:
            phones.extend(_SYMBOLS[symbol])
        else:
            unknown.append(symbol[:_SHOWN_LETTERS])
    if unknown:
        wrong = ", ".join(repr(symbol) for symbol in dict.fromkeys(unknown[:_SHOWN]))
        valid = " ".join(symbol for symbol in _SYMBOLS if len(symbol) == 1)
        raise TextError(f"[[...]] has IPA without a phone: {wrong}; valid IPA symbols are {valid}")
    return tuple(phones)


def _iterate_symbols(text: str) -> Iterator[str]:
    """Yields the longest known symbols, and an unknown symbol together with its marks."""
    for syllable in _BETWEEN_SYLLABLES.split(unicodedata.normalize("NFD", text)):
        letters = syllable.translate(_NARROW)
        place = 0
        while place < len(letters):
            longest = min(_MAX_SYMBOL, len(letters) - place)
            sizes = range(longest, 0, -1)
            known = (size for size in sizes if letters[place : place + size] in _SYMBOLS)
            end = place + next(known, 1)
            while end < len(letters) and unicodedata.combining(letters[end]):
                end += 1
            yield unicodedata.normalize("NFC", letters[place:end])
            place = end


_SHOWN_PHONES = 5
_VALID = f"valid phones are {' '.join(PHONES)}, or IPA in slashes"


def override_phones(content: str) -> tuple[str, ...]:
    """Reads phones as ARPAbet or IPA: "K AE T", "kæt".

    IPA with only ASCII letters needs slashes: "/pit/".

    Raises:
        TextError: nothing, or something that is no phone.
    """
    if not content.isascii() or re.fullmatch(r"/.+/", content, re.DOTALL):
        phones = ipa_phones(content)
    else:
        phones = _parse_arpabet(content)
    if not phones:
        raise TextError(f"[[...]] holds phones, but has nothing; {_VALID}")
    return phones


def _parse_arpabet(content: str) -> tuple[str, ...]:
    """Parses ARPAbet phones, ignoring stress digits."""
    phones = tuple(phone.rstrip("012").upper() for phone in content.split())
    unknown = [phone for phone in phones if phone not in PHONES]
    if unknown:
        wrong = ", ".join(repr(phone[:20]) for phone in unknown[:_SHOWN_PHONES])
        raise TextError(f"[[...]] holds phones, but has {wrong}; {_VALID}")
    return phones
