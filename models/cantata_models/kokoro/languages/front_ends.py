"""Which languages' texts can be read here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from cantata_models.kokoro.config import Alphabet
from cantata_models.kokoro.languages.reader import MAX_MARKS, MarksAlone, TextReader
from cantata_models.kokoro.languages.said import SentenceG2P


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


def _load_japanese(alphabet: Alphabet) -> SentenceG2P:
    from cantata_models.kokoro.languages.japanese import JapaneseG2P

    return JapaneseG2P()


def _load_chinese(alphabet: Alphabet) -> SentenceG2P:
    from cantata_models.kokoro.languages.chinese import BOPOMOFO, ChineseG2P

    return ChineseG2P(BOPOMOFO in alphabet.vocabulary)


FRONT_ENDS: Mapping[str, FrontEnd] = {
    "j": FrontEnd(
        "ja",
        _load_japanese,
        "kokoro-ja",
        ("fugashi", "jaconv", "misaki", "mojimoji", "unidic_lite"),
    ),
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


def load_reader(language: str, alphabet: Alphabet) -> TextReader:
    """The reader of a language; loading its packages may take seconds.

    Args:
        language: first letter of a voice's name. If it is not readable here, only phones are read.
        alphabet: of the checkpoint.
    """
    if language in list_readable():
        return TextReader(FRONT_ENDS[language].load(alphabet), alphabet)
    return TextReader(MarksAlone(), alphabet, alphabet.max_phones - MAX_MARKS)
