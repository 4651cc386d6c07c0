"""Phones in the alphabets that clients write, as IPA: X-SAMPA (J. C. Wells, 1995) and the ARPAbet
of CMU's dictionary."""

# ruff: noqa: RUF001 (phones that look like letters are what this file is about)

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

ALPHABETS = ("ipa", "x-sampa", "cmu-arpabet")


def _read_pairs(table: str) -> dict[str, str]:
    """A table of keys, each followed by its value."""
    cells = table.split()
    return dict(zip(cells[::2], cells[1::2], strict=True))


_X_SAMPA: Mapping[str, str] = {
    '"': "ˈ",
    "-": "",
    " ": " ",
    **_read_pairs(
        """
        A ɑ  B β  C ç  D ð  E ɛ  F ɱ  G ɣ  H ɥ  I ɪ  J ɲ  K ɬ  L ʎ  M ɯ  N ŋ  O ɔ  P ʋ  Q ɒ  R ʁ
        S ʃ  T θ  U ʊ  V ʌ  W ʍ  X χ  Y ʏ  Z ʒ  1 ɨ  2 ø  3 ɜ  4 ɾ  5 ɫ  6 ɐ  7 ɤ  8 ɵ  9 œ  { æ
        } ʉ  @ ə  & ɶ  ? ʔ  g ɡ  @` ɚ  3` ɝ  r\\ ɹ  r\\` ɻ  R\\ ʀ  h\\ ɦ  x\\ ɧ  s\\ ɕ  z\\ ʑ
        p\\ ɸ  j\\ ʝ  l\\ ɺ  v\\ ʋ  M\\ ɰ  L\\ ʟ  N\\ ɴ  G\\ ɢ  B\\ ʙ  H\\ ʜ  X\\ ħ  ?\\ ʕ  I\\ ɪ̈
        @\\ ɘ  3\\ ɞ  t` ʈ  d` ɖ  n` ɳ  s` ʂ  z` ʐ  l` ɭ  r` ɽ  % ˌ  : ː  :\\ ˑ  . .  _h ʰ  _j ʲ
        ' ʲ  _w ʷ  _= ̩  = ̩  ~ ̃  _~ ̃  _d ̪  _0 ̥  _v ̬  ` ˞  _ ͡
        """
    ),
}
_X_SAMPA_LETTERS = re.compile(
    "|".join(re.escape(one) for one in sorted(_X_SAMPA, key=len, reverse=True))
    + "|[a-z]|(?P<bad>.)",
    re.DOTALL,
)
_ARPABET: Mapping[str, str] = _read_pairs(
    """
    AA ɑ  AE æ  AH ʌ  AO ɔ  AW aʊ  AX ə  AY aɪ  EH ɛ  ER ɝ  EY eɪ  IH ɪ  IY i  OW oʊ  OY ɔɪ
    UH ʊ  UW u  B b  CH tʃ  D d  DH ð  F f  G ɡ  HH h  JH dʒ  K k  L l  M m  N n  NG ŋ  P p
    R ɹ  S s  SH ʃ  T t  TH θ  V v  W w  Y j  Z z  ZH ʒ
    """
)
_UNSTRESSED: Mapping[str, str] = {"AH": "ə", "ER": "ɚ"}
_STRESS: Mapping[str, str] = {"1": "ˈ", "2": "ˌ"}
_IPA_CATEGORIES = frozenset(("Ll", "Lo", "Lm", "Mn", "Sk"))
_IPA_SIGNS = frozenset(" .'|‖‿↗↘/")


def to_ipa(phones: str, alphabet: str) -> str:
    """The phones in IPA.

    Args:
        phones: as the client wrote them.
        alphabet: one of `ALPHABETS`.

    Raises:
        ValueError: an unknown alphabet, no phones, or a character that stands for none; says which.
    """
    written = " ".join(phones.split())
    if alphabet not in ALPHABETS:
        raise ValueError(f"no alphabet {alphabet!r}; valid: {', '.join(ALPHABETS)}")
    if alphabet == "x-sampa":
        said = _X_SAMPA_LETTERS.sub(_from_x_sampa, written)
    elif alphabet == "cmu-arpabet":
        said = "".join(map(_from_arpabet, written.split()))
    else:
        said = _check_ipa(written.strip("/"))
    if not any(character.isalpha() and character not in "ˈˌː" for character in said):
        raise ValueError("there are no phones")
    return said


def _from_x_sampa(found: re.Match[str]) -> str:
    if found["bad"]:
        raise ValueError(f"{found['bad']!r} is no phone of X-SAMPA")
    return _X_SAMPA.get(found[0], found[0])


def _from_arpabet(written: str) -> str:
    phone, stress = written.rstrip("012").upper(), written[-1:]
    if phone not in _ARPABET:
        raise ValueError(f"{written[:20]!r} is no phone of the ARPAbet")
    if stress == "0" and phone in _UNSTRESSED:
        return _UNSTRESSED[phone]
    return _STRESS.get(stress, "") + _ARPABET[phone]


def _check_ipa(written: str) -> str:
    for character in written:
        if character not in _IPA_SIGNS and unicodedata.category(character) not in _IPA_CATEGORIES:
            raise ValueError(f"{character!r} is no phone of the IPA")
    return written
