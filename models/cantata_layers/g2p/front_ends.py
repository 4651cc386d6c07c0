"""Which languages are read here, and by what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from cantata_layers.g2p.language_reader import MAX_MARKS, LanguageReader
from cantata_layers.g2p.said_parts import Alphabet, SaidPart, SentenceG2P
from cantata_layers.g2p.spelled_words import SpelledG2P


class MarksAlone:
    """Implements `SentenceG2P` for a language whose texts are not read: phones stand between."""

    reads_latin = True

    def read(self, text: str) -> list[SaidPart]:
        """The marks of a text that has nothing else."""
        return [SaidPart(text, 0, len(text))]


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """How the texts of a language are read."""

    tag: str
    """BCP 47."""
    load: Callable[[Alphabet], SentenceG2P]
    extra: str | None = None
    """Of the package, with what it needs; None: nothing more."""
    modules: tuple[str, ...] = ()
    """That the extra brings."""

    @property
    def is_installed(self) -> bool:
        """Whether texts can be read."""
        return all(find_spec(module) is not None for module in self.modules)


def _load_spelling(module: str, name: str) -> Callable[[Alphabet], SentenceG2P]:
    return lambda alphabet: SpelledG2P(getattr(import_module(f"cantata_layers.g2p.{module}"), name))


def _load_japanese(alphabet: Alphabet) -> SentenceG2P:
    from cantata_layers.g2p.dictionaries import JapaneseG2P

    return JapaneseG2P()


def _load_chinese(alphabet: Alphabet) -> SentenceG2P:
    from cantata_layers.g2p.dictionaries import BOPOMOFO, ChineseG2P

    return ChineseG2P(BOPOMOFO in alphabet.vocabulary)


FRONT_ENDS: Mapping[str, FrontEnd] = {
    "e": FrontEnd("es", _load_spelling("spanish", "SPANISH")),
    "f": FrontEnd("fr", _load_spelling("french", "FRENCH")),
    "h": FrontEnd("hi", _load_spelling("hindi", "HINDI")),
    "i": FrontEnd("it", _load_spelling("italian", "ITALIAN")),
    "j": FrontEnd(
        "ja",
        _load_japanese,
        "kokoro-ja",
        ("fugashi", "jaconv", "misaki", "mojimoji", "unidic_lite"),
    ),
    "p": FrontEnd("pt-BR", _load_spelling("portuguese", "PORTUGUESE")),
    "z": FrontEnd(
        "zh",
        _load_chinese,
        "kokoro-zh",
        ("addict", "cn2an", "jieba", "misaki", "ordered_set", "pypinyin", "pypinyin_dict"),
    ),
}
"""By the first letter of a voice's name; English has its own. The others' texts are not read."""


def list_readable() -> frozenset[str]:
    """The languages of `FRONT_ENDS` whose packages are installed."""
    return frozenset(key for key, one in FRONT_ENDS.items() if one.is_installed)


def load_reader(language: str, alphabet: Alphabet) -> LanguageReader:
    """The reader of a language; loading its packages may take seconds. `language`: first letter of
    a voice's name. If it is not readable here, only phones are read."""
    if language in list_readable():
        return LanguageReader(FRONT_ENDS[language].load(alphabet), alphabet)
    return LanguageReader(MarksAlone(), alphabet, alphabet.max_phones - MAX_MARKS)
