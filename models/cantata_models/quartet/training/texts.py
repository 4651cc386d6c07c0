"""The texts that the teacher reads: sentences of every kind, and short paragraphs of them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from cantata_bench.voice_quality.run import read_sentences
from cantata_models.quartet.training import asked, prose

KINDS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (0.33, prose.STATEMENTS),
    (0.06, prose.YES_NO),
    (0.24, asked.YES_NO),
    (0.08, prose.OPEN_QUESTIONS),
    (0.07, prose.OTHER_QUESTIONS),
    (0.06, prose.EXCLAMATIONS),
    (0.06, prose.LISTS),
    (0.07, prose.DIALOGUE),
    (0.03, prose.REPLIES),
)
"""The share of each kind, and its patterns."""
PHRASES = prose.PHRASES | asked.PHRASES
"""Phrases by the name of the slot that they fill."""
PARAGRAPH_SHARE = 0.15
PARAGRAPH = (2, 3)
"""Sentences in a paragraph."""
_SLOT = re.compile(r"\{(\w+)\}")
_RARE_LETTERS = (4, 11)
_VOWEL_AFTER_A = re.compile(r"\b([Aa]) (?=[aeio]|u(?!s|ni))")
_TRIES = 8
"""Attempts to find a phrase that the sentence does not have yet."""


@cache
def list_rare_words() -> tuple[str, ...]:
    """Words of misaki's lexicon that make every sequence of sounds occur."""
    shortest, longest = _RARE_LETTERS
    packed = (files("hibari") / "assets/lexicon_us_silver.json.gz").read_bytes()
    words: dict[str, object] = json.loads(gzip.decompress(packed))
    return tuple(word for word in words if word.isalpha() and shortest <= len(word) <= longest)


def bare(text: str) -> str:
    """Letters and figures alone, to compare sentences."""
    return " ".join(re.findall(r"[\w']+", text.lower()))


@cache
def list_held_out() -> frozenset[str]:
    """The bare sentences of all evaluations, which the teacher may not read for training."""
    return frozenset(bare(sentence.text) for sentence in read_sentences(None))


class TextMaker:
    """Draws texts; the same ones for the same seed."""

    def __init__(self, seed: int | Sequence[int]) -> None:
        self._rng = np.random.default_rng(seed)
        self._shares = np.array([share for share, _ in KINDS])
        self._used = set[str]()

    def draw(self) -> str:
        """One text that is in no evaluation: a sentence, or a paragraph of a few."""
        count = 1
        if self._rng.random() < PARAGRAPH_SHARE:
            count = int(self._rng.integers(PARAGRAPH[0], PARAGRAPH[1] + 1))
        return " ".join(self.draw_sentence() for _ in range(count))

    def draw_sentence(self) -> str:
        """One sentence, or what counts as one in a pattern."""
        while True:
            kind = int(self._rng.choice(len(KINDS), p=self._shares))
            self._used.clear()
            text = self._fill(self._choose(KINDS[kind][1]))
            text = _VOWEL_AFTER_A.sub(r"\1n ", text)
            if bare(text) not in list_held_out():
                return text

    def _choose(self, options: Sequence[str]) -> str:
        return options[int(self._rng.integers(len(options)))]

    def _fill(self, pattern: str) -> str:
        """A capital in a slot's name makes one at the beginning of the phrase."""

        def put(match: re.Match[str]) -> str:
            name = match[1]
            phrase = self._phrase(name.lower())
            return phrase[0].upper() + phrase[1:] if name[0].isupper() else phrase

        return _SLOT.sub(put, pattern)

    def _phrase(self, name: str) -> str:
        if name == "word":
            return self._choose(list_rare_words())
        for _ in range(_TRIES):
            phrase = self._choose(PHRASES[name])
            if phrase not in self._used:
                break
        self._used.add(phrase)
        return self._fill(phrase)
