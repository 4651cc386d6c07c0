# ruff: noqa: RUF001 (a dash between verses is meant)
"""Rules for chapter and verse: "Psalm 23:4" is "psalm twenty three four"."""

from __future__ import annotations

import re

from cantata_layers.english import numbers
from cantata_layers.english.tokens import Expansion, rule, say_span, table

_BOOKS = table(
    """
    Gen: genesis
    Ex: exodus
    Exod: exodus
    Lev: leviticus
    Num: numbers
    Deut: deuteronomy
    Josh: joshua
    Judg: judges
    Sam: samuel
    Kgs: kings
    Chron: chronicles
    Chr: chronicles
    Neh: nehemiah
    Esth: esther
    Ps: psalm
    Pss: psalms
    Prov: proverbs
    Eccl: ecclesiastes
    Isa: isaiah
    Jer: jeremiah
    Lam: lamentations
    Ezek: ezekiel
    Dan: daniel
    Hos: hosea
    Mic: micah
    Hab: habakkuk
    Zech: zechariah
    Mal: malachi
    Matt: matthew
    Mt: matthew
    Mk: mark
    Lk: luke
    Jn: john
    Rom: romans
    Cor: corinthians
    Gal: galatians
    Eph: ephesians
    Phil: philippians
    Col: colossians
    Thess: thessalonians
    Tim: timothy
    Tit: titus
    Philem: philemon
    Heb: hebrews
    Jas: james
    Pet: peter
    Rev: revelation
    """
)
_FULL = (
    "Genesis|Exodus|Leviticus|Numbers|Deuteronomy|Joshua|Judges|Ruth|Samuel|Kings|Chronicles|Ezra"
    "|Nehemiah|Esther|Job|Psalms?|Proverbs|Ecclesiastes|Song of Songs|Song of Solomon|Isaiah"
    "|Jeremiah|Lamentations|Ezekiel|Daniel|Hosea|Joel|Amos|Obadiah|Jonah|Micah|Nahum|Habakkuk"
    "|Zephaniah|Haggai|Zechariah|Malachi|Matthew|Mark|Luke|John|Acts|Romans|Corinthians|Galatians"
    "|Ephesians|Philippians|Colossians|Thessalonians|Timothy|Titus|Philemon|Hebrews|James|Peter"
    "|Jude|Revelation|Surah|Sura|Quran|Qur'an|Koran|Mormon|Nephi|Alma|Gita|Tobit|Judith|Wisdom"
    "|Sirach|Baruch|Maccabees|Mishnah"
)
_ABBREVIATED = "|".join(sorted(_BOOKS, key=len, reverse=True))
_BOOK_BEFORE = re.compile(rf"(?:\b(?:{_FULL})|\b(?:{_ABBREVIATED})\.?)\s$", re.ASCII)
_VERSES_BEFORE = re.compile(r"\d:\d{1,3}(?:[-–]\d{1,3})?[;,]\s$", re.ASCII)
_NTH = {"1": "first", "2": "second", "3": "third", "I": "first", "II": "second", "III": "third"}


def _verse(match: re.Match[str]) -> Expansion:
    before = match.string[max(0, match.start() - 24) : match.start()]
    if not (_BOOK_BEFORE.search(before) or _VERSES_BEFORE.search(before)):
        return None
    chapter = say_span(match.start(), match.end("chapter"), numbers.grouped(match["chapter"]))
    return chapter + say_span(match.start("verse"), match.end(), numbers.grouped(match["verse"]))


def _book(match: re.Match[str]) -> Expansion:
    return say_span(match.start(), match.end(), _BOOKS[match["book"]])


def _numbered_book(match: re.Match[str]) -> Expansion:
    return say_span(match.start(), match.end(), _NTH[match["nth"]])


RULES = (
    rule(
        rf"(?<!\w)(?P<nth>[123]|I{{1,3}})(?=\s(?:{_FULL}|{_ABBREVIATED})\.?\s\d{{1,3}}:\d)",
        _numbered_book,
    ),
    rule(rf"(?<!\w)(?P<book>{_ABBREVIATED})\.?(?=\s\d{{1,3}}:\d)", _book),
    rule(r"(?<![\w:.])(?P<chapter>\d{1,3}):(?P<verse>\d{1,3})(?![\d:]|\s?[AaPp]\.?[Mm]\b)", _verse),
)
